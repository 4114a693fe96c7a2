"""The plain Kafka client of the bench: the same decisions without an engine."""
