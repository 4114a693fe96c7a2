-- PaySim, simulated mobile-money transfers (PS_20174392719_1491204439457_log.csv).
-- It counts time in steps of one hour: all payments of a step are recorded at its beginning, thousands at once. A fixed
-- --rate is the better pace for it. It names no transaction, currency or country: the row is the id, XXX (ISO 4217: no
-- currency) and ZZ (ISO 3166: not known) stand in for the others.
SELECT
  'paysim-' || row_number() OVER () AS payment_id,
  nameOrig AS card_id,
  amount,
  'XXX' AS currency,
  nameDest AS merchant,
  CASE type
    WHEN 'CASH_IN' THEN 'cash_deposit'
    WHEN 'CASH_OUT' THEN 'cash_withdrawal'
    WHEN 'DEBIT' THEN 'direct_debit'
    WHEN 'PAYMENT' THEN 'purchase'
    ELSE lower(type)
  END AS merchant_category,
  'ZZ' AS country,
  'ZZ' AS card_country,
  TIMESTAMP '2025-01-01' + to_hours(CAST(step AS BIGINT)) AS created_at
FROM file
