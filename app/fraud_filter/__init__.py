"""A fraud filter on Kafka and Spark Structured Streaming, in four execution modes.

What runs in production, one package for each subject; what measures and proves it is the package `lab` beside this one.
Importing it imports no Spark.
"""

__version__ = "0.2.0"
