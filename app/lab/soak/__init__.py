"""The Compose stack under load for a long time, with random faults: is anything lost, and does anything grow?"""
