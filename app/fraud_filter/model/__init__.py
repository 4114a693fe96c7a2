"""A saved Spark ML model as the filter uses it: what it is, whether it can run here, and its score as a column."""
