"""The verbs that prove: `fraud-filter` shows them where this package is installed."""
