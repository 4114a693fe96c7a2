"""The command line: one module a verb, imported only when that verb is called."""
