"""Starts Java for Spark, with the locked jars and the archive of classes."""
