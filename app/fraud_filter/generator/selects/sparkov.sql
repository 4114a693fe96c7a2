-- Sparkov, simulated credit card transactions (fraudTrain.csv, fraudTest.csv).
-- All cards and merchants are American; every merchant's name begins with fraud_, fraud or not. unix_time is seven years
-- off the time in words, so the latter is taken.
SELECT
  trans_num AS payment_id,
  cc_num AS card_id,
  amt AS amount,
  'USD' AS currency,
  regexp_replace(merchant, '^fraud_', '') AS merchant,
  category AS merchant_category,
  'US' AS country,
  'US' AS card_country,
  trans_date_trans_time AS created_at
FROM file
