"""The query: which decision becomes of each record, what it reads and writes, and what is checked before it starts."""
