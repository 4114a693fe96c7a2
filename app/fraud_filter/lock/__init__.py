"""One filter for each checkpoint: a lock of the file system, or of a Kafka group."""
