"""How the tests of the Compose files read them."""

from __future__ import annotations

import yaml


class ComposeLoader(yaml.SafeLoader):
    """Reads `!reset` as nothing, whatever is written behind it."""


ComposeLoader.add_constructor("!reset", lambda _, __: None)
