"""The demo's arguments: what is accepted, and how the rest is refused before anything is started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fraud_filter.errors import UsageError
from lab.demo.plan import ALL_MODES, DemoPlan, check_outputs, parse_modes


def test_all_modes_run_when_none_is_named() -> None:
    assert parse_modes("") == parse_modes(" , ") == ALL_MODES
    assert ALL_MODES == ("micro-batch", "async-progress", "continuous", "real-time")


def test_modes_run_in_the_order_given() -> None:
    assert parse_modes("real-time, micro-batch") == ("real-time", "micro-batch")


def test_an_unknown_mode_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"--modes: 'turbo' is not a mode: choose from micro-batch, async"):
        parse_modes("continuous,turbo")


def test_a_mode_given_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="'continuous' is given twice"):
        parse_modes("continuous,continuous")


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("seconds", 0),
        ("seconds", float("nan")),
        ("rate", -1),
        ("rate", float("inf")),
        ("warmup_s", -0.5),
        ("partitions", 0),
        ("partitions", 65),
        ("flagged_share", 0),
        ("flagged_share", 1.1),
        ("malformed_share", 0.6),
        ("malformed_share", -0.1),
    ],
)
def test_numbers_out_of_range_are_refused_by_name_and_value(argument: str, value: float) -> None:
    option = "--" + argument.removesuffix("_s").replace("_", "-")
    with pytest.raises(UsageError) as refusal:
        DemoPlan(**{argument: value})  # type: ignore[arg-type]
    assert str(refusal.value).startswith(f"argument {option}: {value:g} is not accepted: give ")


def test_a_missing_output_directory_is_made(tmp_path: Path) -> None:
    check_outputs(DemoPlan(output=tmp_path / "a" / "b", png=tmp_path / "c" / "plot.png"))
    assert (tmp_path / "a" / "b").is_dir()
    assert list((tmp_path / "c").iterdir()) == []


def test_an_output_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"--output: .*can't be written to"):
        check_outputs(DemoPlan(output=tmp_path / "file"))


def test_a_plot_that_is_no_png_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--png: .*give a file name that ends in \.png"):
        check_outputs(DemoPlan(output=tmp_path, png=tmp_path / "plot.svg"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["--modes", "turbo"],
        ["--seconds", "0"],
        ["--rate", "many"],
        ["--output", "/dev/null/report"],
        ["--real-time-duration", "soon"],
    ],
)
def test_bad_arguments_end_with_code_2_and_one_sentence(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fraud_filter", "demo", *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2
    assert arguments[1] in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_shares_may_be_all_together() -> None:
    for flagged, malformed in ((0.9, 0.1), (0.7, 0.3), (1, 0)):
        assert DemoPlan(modes=ALL_MODES, flagged_share=flagged, malformed_share=malformed).flagged_share == flagged
    with pytest.raises(UsageError, match=r"--malformed-share: 0\.2"):
        DemoPlan(modes=ALL_MODES, flagged_share=0.9, malformed_share=0.2)
