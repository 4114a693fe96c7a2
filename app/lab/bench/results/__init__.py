"""What the bench says of its rounds: results, tables, pages."""
