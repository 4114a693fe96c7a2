"""The records of the input topic as the query is given them."""

COLUMNS = "_key BINARY, _value BINARY, _topic STRING, _partition INT, _offset BIGINT, _timestamp TIMESTAMP"
