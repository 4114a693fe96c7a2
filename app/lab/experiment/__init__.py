"""What a changed setting does to a mode: both run in turn under one load, measured and audited as in the bench."""
