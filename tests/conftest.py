"""All tests run without the `.env` of the checkout: it is the user's own, and would change what is tested."""

from __future__ import annotations

import os

# Before any module of the program is imported, and for every program that a test starts.
os.environ["FRAUD_ENV_FILE"] = os.devnull
