"""Checkpoints of Structured Streaming queries: read, judged, and repaired so that no record is skipped.

`entries` and `contents` say what lies in one, `plan` what each engine needs changed before it starts from it; neither
touches a file. `files` reaches any Hadoop file system, `repair` carries a plan out, `startup` does so for the filter.
"""
