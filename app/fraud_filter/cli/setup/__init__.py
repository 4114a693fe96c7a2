"""The verbs that prepare what the filter runs on: a project's files, topics, users."""
