"""The Java runtime and the jars that it runs, by their locks."""
