"""Measures end-to-end latency from the output topics."""
