"""Training on payments of a real topic and of a file of them: the same history from both, and a model that works."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from exhaustive import exhaustive
from fraud_filter.config import load
from fraud_filter.errors import UsageError
from fraud_filter.generator.payments import MadePayments, Shares
from fraud_filter.generator.sender import Sender
from fraud_filter.generator.source import Steady
from fraud_filter.model.saved import read_model
from fraud_filter.train import from_file
from models import SCHEMA, SHIPPED, read, settings_with, with_model
from running import Stage, call, read_topics

COUNT = 4000
SHARES = Shares(flagged=0.1, malformed=0.02, fraud=0.1)
_TRAINING_S = 500


@pytest.fixture
def labelled(stage: Stage) -> Stage:
    """A topic with payments of the generator, most of which have their truth in a header."""
    source = MadePayments.for_settings(load(), Steady(2000), seed=3, shares=SHARES)
    Sender(stage.settings(), source, count=COUNT).run()
    return stage


def _write(records: list[Any], file: Path) -> None:
    """The payments that can be read as rows, with their truth and the moment of their append."""
    with file.open("w", newline="") as opened:
        rows = csv.DictWriter(opened, [*(field.name for field in SCHEMA.fields), "is_fraud", "appended"])
        rows.writeheader()
        for record in records:
            try:
                payment = json.loads(record.value or b"")
            except ValueError:
                continue
            label = (dict(record.headers).get("label") or b"").decode()
            if isinstance(payment, dict) and payment.keys() <= set(rows.fieldnames):
                at = datetime.fromtimestamp(record.timestamp / 1000, UTC).isoformat(timespec="milliseconds")
                rows.writerow({**payment, "is_fraud": label, "appended": at})


def _train(stage: Stage, *words: str) -> dict[str, str]:
    """What the verb prints, by the first word of the line."""
    done = call("train", *words, "--trees", "3", timeout_s=_TRAINING_S, **stage.environment())
    assert done.returncode == 0, done.stderr
    lines = (line.split(maxsplit=1) for line in done.stdout.splitlines())
    return {line[0]: line[1] for line in lines if len(line) == 2}


def _learnt(told: dict[str, str]) -> tuple[int, int]:
    """Payments that it has learnt from or was tested on, and those of them that are fraud."""
    numbers = [told[line].replace(",", "").split() for line in ("learnt", "tested")]
    return sum(int(words[1]) for words in numbers), sum(int(words[-4]) for words in numbers)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("source", exhaustive(["topic", "file"], but=["file"]))
def test_a_topic_and_a_file_of_it_teach_the_same(labelled: Stage, tmp_path: Path, source: str) -> None:
    records = read_topics(labelled.address, labelled.input)[labelled.input]
    assert len(records) == COUNT
    labels = [label for record in records if (label := dict(record.headers).get("label"))]
    fraud = sum(label != b"legitimate" for label in labels)
    (tmp_path / "features.yml").write_text(SHIPPED)
    words = ("--rules", str(with_model(tmp_path, SHIPPED).with_name("features.yml")), "--out", str(tmp_path / "model"))
    if source == "topic":
        told = _train(labelled, "topic", *words)
    else:
        _write(records, tmp_path / "history.csv")
        told = _train(labelled, str(tmp_path / "history.csv"), *words, "--time", "appended")
    assert {"amount", "payments_2m", "countries_1m"} <= set(told["inputs"].split(", "))
    assert float(told["auc"]) > 0.8
    assert _learnt(told) == (len(labels), fraud)
    rules = tmp_path / "rules.yml"
    _, model = read_model(read(rules), SCHEMA, settings_with(rules))
    assert model


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"file": "nowhere.csv"}, "nowhere.csv' can't be read as csv"),
        ({"label": "is_fruad"}, r"has no column 'is_fruad' \(did you mean 'is_fraud'"),
        ({"time": "paid_at"}, "has no column 'paid_at'"),
        ({"header": "payment_id,is_fraud,created_at"}, "has no column 'card_id'"),
    ],
)
def test_what_is_no_history_is_refused(spark: Any, tmp_path: Path, changes: dict[str, str], said: str) -> None:
    names = ",".join(field.name for field in SCHEMA.fields)
    (tmp_path / "history.csv").write_text(changes.get("header", f"{names},is_fraud") + "\n")
    file = str(tmp_path / changes.get("file", "history.csv"))
    with pytest.raises(UsageError, match=rf"argument HISTORY: .*{said}"):
        from_file(spark, file, SCHEMA, label=changes.get("label", "is_fraud"), time=changes.get("time"))
