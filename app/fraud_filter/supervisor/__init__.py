"""Keeps the query running: starts it, watches it, starts it again from its checkpoint, and stops it within bounds."""

from fraud_filter.supervisor.run import run

__all__ = ["run"]
