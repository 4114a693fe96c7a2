"""The bench: modes, Kafka Streams and Apache Flink under the same load, round by round, measured and audited."""
