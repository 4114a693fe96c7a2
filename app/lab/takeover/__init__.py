"""How long nothing is decided when the filter is killed, with and without a standby, with an audit after each kill."""
