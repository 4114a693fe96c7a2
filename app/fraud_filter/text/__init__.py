"""How things are said: to terminals, in tables, in files."""
