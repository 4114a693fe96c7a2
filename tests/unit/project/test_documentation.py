"""What README and docs say of each other: figures are those of the measured table, links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fraud_filter.home import HOME
from fraud_filter.modes import MODES
from lab.harness.tables import find_place

README = (HOME / "README.md").read_text(encoding="utf-8")
BENCHMARK = HOME / "docs/results/bench.md"
PAGES = [
    HOME / "README.md",
    HOME / "CONTRIBUTING.md",
    HOME / "SECURITY.md",
    HOME / "monitoring/README.md",
    *sorted((HOME / "docs").rglob("*.md")),
]


def measured() -> dict[str, dict[str, float]]:
    """The table that `make bench DOCS=docs/results/bench.md` writes: contender -> column -> figure."""
    before, after = find_place(BENCHMARK, "bench")
    text = BENCHMARK.read_text(encoding="utf-8").removeprefix(before).removesuffix(after).strip()
    head, _, *lines = ([cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines())
    rows = [dict(zip(head, cells, strict=True)) for cells in lines]
    return {
        row["contender"].strip("`"): {name: float(cell) for name, cell in row.items() if re.fullmatch(r"[\d.]+", cell)}
        for row in rows
    }


def two_digits(figure: float) -> float:
    return float(f"{figure:.2g}")


def shown() -> dict[str, list[str]]:
    rows = re.findall(r"^\| \*?`([\w-]+)`(?:, to compare\*)? \|(.*)\|$", README, re.MULTILINE)
    return {name: [cell.strip() for cell in rest.split("|")] for name, rest in rows if rest.count("|") == 4}


@pytest.mark.parametrize("name", [*MODES, "flink", "floor"])
def test_the_table_of_readme_is_the_measured_one(name: str) -> None:
    p50, p99, due_p99, cores = shown()[name][:4]
    row = measured()[name]
    median = row["p50, ms at 1,000/s"]
    assert (p50 == "< 1") if median < 1 else (two_digits(float(p50)) == two_digits(median))
    assert two_digits(float(p99)) == two_digits(row["p99, ms at 1,000/s"])
    assert two_digits(float(due_p99)) == two_digits(row["due p99, ms at 1,000/s"])
    assert float(cores) == pytest.approx(row["CPU s/1,000 at 5,000/s"] * 5, abs=0.0051)


def test_the_sentence_of_value_has_the_measured_figures() -> None:
    at = "ms at 1,000/s"
    rows = measured()
    ours, flink, stock = rows["real-time"], rows["flink"], rows["micro-batch"]
    text = " ".join(README.split())
    assert ours[f"p50, {at}"] < 0.7  # whole milliseconds leave no more to be said of it
    assert "At 1,000 payments/s in real-time mode, half of the decisions take **less than a millisecond**" in text
    assert f"99 % at most **{ours[f'p99, {at}']:.1f} ms**." in text
    assert f"With the delay at the sender, 99 % take at most **{ours[f'due p99, {at}']:.1f} ms**;" in text
    assert f"Apache Flink takes {flink[f'due p99, {at}']:.1f} ms" in text
    assert f"Spark's default mode, micro-batch, {stock[f'due p99, {at}']:.0f} ms." in text


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
