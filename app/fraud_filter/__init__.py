"""A fraud filter on Kafka and Spark Structured Streaming, in four execution modes.

The package holds the filter (`schema`, `rules`, `query`, `modes`, `preflight`, `supervisor`), the tools around it
(`generator`, `probe`, `audit`) and the stack without Docker (`embedded`, `demo`). Importing it imports no Spark.
"""

__version__ = "0.1.0"
