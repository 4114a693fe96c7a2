"""The rules file: its form, what a predicate may say, and what it may cost."""
