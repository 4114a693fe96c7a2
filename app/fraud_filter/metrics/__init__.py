"""What is counted and timed, and the endpoint that serves it."""
