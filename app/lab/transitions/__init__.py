"""Every change of the execution mode on one checkpoint, under load, with an audit after each."""
