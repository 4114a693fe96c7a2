"""Writes payments to Kafka at a set pace: made up, with a known share of fraud, or replayed from a file.

`Sender(settings, source).run()` of `sender` sends what a source gives: `payments.MadePayments` or
`replay.Replay`. `Steady` and `AtRandom` of `source` say when.
"""
