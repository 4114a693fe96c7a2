"""Apache Flink as a contender: one SQL statement that decides as the filter does, in an environment of its own."""
