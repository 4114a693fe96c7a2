"""The rules file: its form, its features, and the language of its predicates."""
