"""The verbs of the Compose stack."""
