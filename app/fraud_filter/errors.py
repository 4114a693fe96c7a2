"""The errors that a user can act on. Anything else that escapes is a defect and keeps its stack trace."""

from __future__ import annotations

#: Exit codes of every verb, in one place (documented in the README and, those of `run`, in docs/operate.md).
EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_DATA_LOSS = 3
EXIT_GAVE_UP = 4


class FraudFilterError(Exception):
    """A failure that one sentence explains: the command line prints it and exits with `exit_code`."""

    exit_code = EXIT_FAILED


class UsageError(FraudFilterError):
    """Bad input: the sentence names the setting, the value received, and what would be accepted. Exit code 2."""

    exit_code = EXIT_USAGE
