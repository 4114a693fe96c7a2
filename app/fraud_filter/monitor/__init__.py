"""Watches the running query: progress, lag, stalls, health."""
