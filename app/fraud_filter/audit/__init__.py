"""Compares what was written with what should have been: lost, duplicated, unexpected."""
