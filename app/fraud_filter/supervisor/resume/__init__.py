"""Before a query starts: where it resumes, given what the checkpoint and the input topic hold."""
