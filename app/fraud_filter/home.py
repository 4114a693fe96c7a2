"""Where the program's own files are."""

from __future__ import annotations

from pathlib import Path

#: The checkout (or the installed tree) that holds `app/rules.yml`, `app/payment.ddl`, `kafka/` and `spark/`.
HOME = Path(__file__).resolve().parents[2]
