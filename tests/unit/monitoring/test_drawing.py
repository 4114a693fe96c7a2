"""What drawing the dashboards says where something that it needs is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from fraud_filter.home import HOME


def test_without_node_it_says_so_in_one_sentence(tmp_path: Path) -> None:
    for name in ("bash", "dirname", "sed"):
        found = shutil.which(name)
        assert found
        (tmp_path / name).symlink_to(found)
    program = HOME / "monitoring/grafana/draw/run"
    env = {**os.environ, "PATH": str(tmp_path)}
    done = subprocess.run([program], env=env, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stderr == ("drawing the dashboards needs Node.js 20 or newer with npm: install it, then try again\n")
