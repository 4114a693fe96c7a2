"""A filter under load is disturbed, and audited: what is lost, what is repeated, and how long nothing is decided."""
