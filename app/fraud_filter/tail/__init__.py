"""Shows the records of a topic, decisions above all: `record` says what is shown of one, `reading` gets them."""
