"""Kafka: clients, topics, offsets, users and their rights."""
