"""A record that ends the query again and again: how it is found, and how the filter goes on without it."""
