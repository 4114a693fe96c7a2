"""Kafka Streams as a contender: one Java class that decides as the filter does."""
