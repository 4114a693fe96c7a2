"""The reference documents that are written from the code: metrics and settings. `make reference` calls it."""
