"""The demo: every mode in turn on an embedded stack, watched live, audited and reported."""
