"""The bench: modes, a plain client and Apache Flink under the same load, round by round, measured and audited."""
