"""How a page is filled: one file that loads nothing, in the look that all pages share (`page.css`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jinja2

from fraud_filter.pages.numbers import format_number, label_fact


def render(package: str, template: str, filters: dict[str, Callable[..., str]] | None = None, **values: Any) -> str:
    """Fills `template`, a file of the Python package `package`; it may include the files of this package."""
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [jinja2.PackageLoader(package, ""), jinja2.PackageLoader("fraud_filter.pages", "")],
        ),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"number": format_number, "label": label_fact, **(filters or {})}
    return environment.get_template(template).render(**values)
