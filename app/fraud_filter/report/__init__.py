"""`fraud-filter report`: one page about the filter, drawn from what Prometheus has stored of it."""
