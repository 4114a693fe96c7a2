"""Where the program's own files are."""

from __future__ import annotations

from pathlib import Path

#: What an installed package has beside its code, laid out as in the checkout (`app/hatch_build.py`).
_PACKAGED = Path(__file__).resolve().with_name("files")

#: Whether this is an installed package, without a checkout's Makefile.
IS_PACKAGE = _PACKAGED.is_dir()

#: The directory that holds `app/rules.yml`, `app/payment.ddl`, `kafka/` and `spark/`: the checkout, the images' tree,
#: or the installed package's own.
HOME = _PACKAGED if IS_PACKAGE else Path(__file__).resolve().parents[2]
