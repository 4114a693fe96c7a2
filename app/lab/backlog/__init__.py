"""How each mode works off what came in during an outage: a backlog on an embedded stack, timed, weighed and audited."""
