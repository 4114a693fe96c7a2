"""Shows pages in a real browser, headless, and measures what it makes of them."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from programs import require_program


def browse(page: Path, directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Opens the page; `words` are further arguments of the browser, `directory` its profile."""
    browser = require_program("FRAUD_TEST_BROWSER", "chromium", "google-chrome", "chromium-browser")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={directory}", "--window-size=1100,3700"]
    argv = [browser, *options, "--enable-logging=stderr", *words, page.as_uri()]
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120)


#: Runs in the browser: the size of each plot, and of what is wider than the page.
MEASURE = """
<script>
addEventListener("load", () => {
  const size = element => { const box = element.getBoundingClientRect(); return [box.width, box.height]; };
  const told = {plots: [...document.querySelectorAll("figure svg")].map(size),
                curves: [...document.querySelectorAll("figure svg")].map(svg => svg.querySelectorAll("path").length),
                outside: [...document.querySelectorAll("figure svg text")].filter(text => {
                  const box = text.getBoundingClientRect(), plot = text.ownerSVGElement.getBoundingClientRect();
                  return box.left < plot.left || box.right > plot.right || box.top < plot.top ||
                         box.bottom > plot.bottom;
                }).map(text => text.textContent),
                loaded: performance.getEntriesByType("resource").map(entry => entry.name),
                wide: document.documentElement.scrollWidth > innerWidth};
  document.title = JSON.stringify(told);
  console.log("measured");
});
</script>
"""


def measure(page: Path, directory: Path) -> dict[str, Any]:
    """What the script above tells of a page; asserts that nothing complains on the console."""
    measured = directory / "measured.html"
    measured.write_text(page.read_text().replace("</body>", MEASURE + "</body>"))
    shown = browse(measured, directory / "profile", "--dump-dom")
    console = [line for line in shown.stderr.splitlines() if "CONSOLE" in line]
    assert ["measured" in line for line in console] == [True], console  # the console is heard, and nothing else is said
    title = re.search(r"<title>(.*?)</title>", shown.stdout, re.DOTALL)
    assert title is not None
    told: dict[str, Any] = json.loads(title[1].replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"))
    return told
