"""`python -m fraud_filter` is `fraud-filter`."""

from fraud_filter.cli.main import main

main()
