"""What all measurements share: the stack without Docker and its programs, waiting, draining, and the outcome."""
