"""What README and docs say: figures are the measured ones, links lead somewhere, references are the code's."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from fraud_filter.home import HOME
from fraud_filter.modes import MODES
from lab.harness.tables import find_place
from tools import reference

README = (HOME / "README.md").read_text(encoding="utf-8")
BENCHMARK = HOME / "docs/results/bench.md"
#: A figure at the beginning of a cell; its interval may follow.
FIGURE = re.compile(r"[\d.,]+")
#: Columns of README's table, and those of the measured one.
COLUMNS = {
    "p50, ms": "due p50, ms at 1,000/s",
    "p99, ms": "due p99, ms at 1,000/s",
}
PAGES = [
    HOME / "README.md",
    HOME / "CONTRIBUTING.md",
    HOME / "SECURITY.md",
    HOME / "monitoring/README.md",
    *sorted((HOME / "docs").rglob("*.md")),
]


def measured() -> dict[str, dict[str, float]]:
    """The table that `lab bench --docs docs/results/bench.md` writes: contender -> column -> figure."""
    before, after = find_place(BENCHMARK, "bench")
    text = BENCHMARK.read_text(encoding="utf-8").removeprefix(before).removesuffix(after).strip()
    lines = (line for line in text.splitlines() if line.startswith("|"))
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return {
        row["contender"].strip("`"): {
            name: float(figure[0].replace(",", "")) for name, cell in row.items() if (figure := FIGURE.match(cell))
        }
        for row in (dict(zip(head, cells, strict=True)) for cells in rows)
    }


def two_digits(figure: float) -> float:
    return float(f"{figure:.2g}")


def shown() -> dict[str, dict[str, str]]:
    """The table of README: contender -> column -> cell."""
    first = re.search(r"^(?:\|.*\n)+", README, re.MULTILINE)
    assert first
    head, _, *rows = first[0].splitlines()
    columns = [cell.strip() for cell in head.strip("|").split("|")[1:]]
    found = (re.fullmatch(r"\| \*?`([\w-]+)`(?:, to compare\*)? \|(.*)\|", row) for row in rows)
    return {
        one[1]: dict(zip(columns, (cell.strip() for cell in one[2].split("|")), strict=True)) for one in found if one
    }


def test_readme_compares_the_modes_with_another_engine() -> None:
    assert {*MODES, "flink-json"} <= shown().keys()


@pytest.mark.parametrize("name", shown())
def test_the_table_of_readme_is_the_measured_one(name: str) -> None:
    cells, row = shown()[name], measured()[name]
    checked = 0
    for column, cell in cells.items():
        if figure := row.get(COLUMNS.get(column, "")):
            checked += 1
            assert two_digits(float(cell)) == two_digits(figure)
    assert checked == len(COLUMNS)
    assert float(cells["cores at 5,000/s"]) == pytest.approx(row["CPU s/1,000 at 5,000/s"] * 5, abs=0.0051)


@pytest.mark.parametrize("other", ["micro-batch", "flink-json"])
def test_what_readme_says_of_two_contenders_is_what_the_bench_says(other: str) -> None:
    begin = f"- At 1,000/s `real-time` against `{other}`:"
    [said] = [line for line in BENCHMARK.read_text(encoding="utf-8").splitlines() if line.startswith(begin)]
    assert said.removeprefix("- ") in " ".join(README.split())


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?://)([^)\s]+)\)", page.read_text(encoding="utf-8"))
    for link in links:
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_of_the_code_that_a_page_names_exist(page: Path) -> None:
    named = re.findall(r"`([\w.-]+/[\w./-]+\.(?:py|yml|toml|properties|ddl))`", page.read_text(encoding="utf-8"))
    roots = (HOME, HOME / "app", HOME / "app/fraud_filter", HOME / "app/lab")
    assert [name for name in named if not any((root / name).exists() for root in roots)] == []


@pytest.mark.parametrize("name", ["metrics", "settings"])
def test_a_reference_is_what_the_code_says(name: str, tmp_path: Path) -> None:
    document: Path = getattr(reference, name.upper())
    made = tmp_path / "made.md"
    shutil.copy(document, made)
    getattr(reference, f"write_{name}")(made)
    assert made.read_text() == document.read_text(), "run `make generated`"
