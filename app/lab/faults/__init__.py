"""Faults put into the Compose stack under load, with an audit after each. Needs a Docker Engine; knows no Spark."""
