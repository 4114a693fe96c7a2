"""The stack without Docker: Java, the jars, a Kafka broker, and the child processes of one program run."""
