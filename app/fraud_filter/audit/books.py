"""The audit's books: what should become of each payment, and what did, as two tables of DuckDB that one join compares.

Memory is bounded: what does not fit waits on disk, where TMPDIR says.
"""

from __future__ import annotations

import json
import struct
import tempfile
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import duckdb

from fraud_filter.audit.result import FeatureCounts, Finding
from fraud_filter.errors import FraudFilterError
from fraud_filter.oracle import Decision, Place
from fraud_filter.records import Source
from fraud_filter.schema import APPROVE, FLAG, REASON_LATE, REASON_UNDECIDABLE, REJECT, PaymentSchema

#: What should become of a payment, beside the decisions that are written. PASS: no rule matches it, and that is not
#: written. UNTOLD: it is valid, and no one can tell whether it is to be flagged. FAILED: the oracle could not judge it.
PASS, UNTOLD, FAILED = "pass", "untold", "failed"
#: A query of the user's is to write a row, or wrote one.
ROW = "row"
#: Decisions and rows that are written, and those of them about valid payments.
_VERBS = {FLAG: "flagged", REJECT: "rejected", APPROVE: "approved", ROW: "written"}
_WRITTEN, _VALID = tuple(_VERBS), (FLAG, APPROVE)

_FINDINGS = ("lost", "duplicated", "unexpected", "unjudged")
#: Offsets of a partition, and partitions, that are compared at a time: so DuckDB's joins stay within its memory.
_SLICE, PARTITIONS = 2**16, 8
_MEMORY = "96MB"
_ROWS_AT_ONCE = 10_000

#: A `slice` is compared at a time. `part` and `place` are the payment's partition and offset, `version` the number of
#: the rules. `told` names the rules that matched, as JSON, or the reason; `content` are hashes of key and fields, or of
#: key and value. `is_due`: these rules had to decide.
_TABLE = """(slice INTEGER, part INTEGER, place BIGINT, version INTEGER, kind VARCHAR, at_ms BIGINT, told VARCHAR,
    content BLOB, is_due BOOLEAN)"""
#: Each decision that was written, and each that was due and was not, with a verdict. A late or undecidable payment
#: stands for whatever was due: the audit can't tell when that holds.
_JUDGE = f"""CREATE OR REPLACE TABLE judged AS SELECT
    part, place, version, due.is_due, seen.kind, due.kind AS due_kind, seen.told, due.told AS due_told,
    seen.at_ms, due.at_ms AS due_ms,
    if(seen.content <> due.content, seen.content, NULL) AS content,
    if(seen.content <> due.content, due.content, NULL) AS due_content,
    CASE
        WHEN seen.kind IS NULL THEN 'missing'
        WHEN due.kind IS NULL THEN 'uncalled for'
        WHEN seen.kind = '{REJECT}' AND seen.told IN ('{REASON_LATE}', '{REASON_UNDECIDABLE}') THEN 'for whatever'
        WHEN due.kind = '{FAILED}' OR (due.kind = '{UNTOLD}' AND seen.kind IN {_VALID}) THEN 'unknown'
        WHEN seen.kind <> due.kind THEN 'uncalled for'
        WHEN seen.at_ms <> due.at_ms THEN 'another time'
        WHEN seen.content <> due.content OR (seen.kind IN {_VALID} AND seen.told <> due.told) THEN 'different'
        ELSE 'right'
    END AS verdict
    FROM (FROM seen WHERE slice = $slice) AS seen FULL OUTER JOIN (FROM due WHERE slice = $slice) AS due
    USING (part, place, version)
    WHERE seen.kind IS NOT NULL OR due.kind IN {_WRITTEN}"""  # noqa: S608
#: The findings that follow: wrong decisions, those that no right one of any rules stands in for, and copies.
_FOUND = f"""
    SELECT 'unexpected' AS finding, * FROM judged WHERE verdict IN ('uncalled for', 'another time', 'different')
    UNION ALL BY NAME
    SELECT DISTINCT 'lost' AS finding, part, place, due_kind AS kind, due_told AS told FROM judged ANTI JOIN (
        FROM judged WHERE verdict IN ('for whatever', 'different', 'right')
    ) AS made USING (part, place)
    WHERE is_due AND due_kind IN {_WRITTEN} AND verdict IN ('missing', 'uncalled for', 'another time')
    UNION ALL BY NAME
    SELECT 'duplicated' AS finding, part, place, kind FROM judged WHERE verdict IN ('different', 'right')
    QUALIFY row_number() OVER (PARTITION BY part, place ORDER BY kind) > 1
    ORDER BY finding, part, place, kind"""  # noqa: S608
_COUNTS = f"""SELECT count(*) FILTER (kind IN ('{FLAG}', '{ROW}')) AS written,
    count(*) FILTER (kind = '{APPROVE}') AS approved,
    count(*) FILTER (kind IN {_VALID} AND verdict IN ('different', 'right') AND content IS DISTINCT FROM ''::BLOB)
        AS compared,
    count(DISTINCT (part, place)) FILTER (kind = '{REJECT}' AND verdict <> 'another time') AS rejected
    FROM judged"""  # noqa: S608
_REASONS = f"""SELECT split_part(told, ':', 1) AS reason, count(DISTINCT (part, place)) AS payments FROM judged
    WHERE kind = '{REJECT}' AND verdict IN ('for whatever', 'different', 'right') GROUP BY reason"""  # noqa: S608

#: Records that were appended after the first one of a later writer.
_LATE = """SELECT count(*) AS late FROM writes JOIN (
        SELECT writer, min(min(at_ms)) OVER later AS until_ms FROM writes GROUP BY writer
        WINDOW later AS (ORDER BY writer ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
    ) AS writers USING (writer) WHERE at_ms > until_ms"""


def in_groups(numbers: Iterable[int]) -> Iterator[list[int]]:
    """Partitions in their order, as many as are compared at a time: best read so, too."""
    rest = sorted(numbers)
    for at in range(0, len(rest), PARTITIONS):
        yield rest[at : at + PARTITIONS]


@contextmanager
def bounded_database(memory: str = _MEMORY) -> Iterator[duckdb.DuckDBPyConnection]:
    """An empty database that holds `memory`, and the rest on disk, where TMPDIR says.

    Raises:
        FraudFilterError: the disk is full, or can't be written.
    """
    limits: dict[str, Any] = {"memory_limit": memory, "threads": 1, "preserve_insertion_order": False}
    try:
        with (
            tempfile.TemporaryDirectory(prefix="fraud-filter-audit-") as directory,
            duckdb.connect(config={**limits, "temp_directory": directory}) as database,
        ):
            yield database
    except (OSError, duckdb.IOException, duckdb.OutOfMemoryException) as error:
        reason = str(error).splitlines()[0]
        raise FraudFilterError(
            f"the audit can't keep its tables in {tempfile.gettempdir()}: {reason}; TMPDIR names another place"
        ) from None


class Books:
    """First `see` all that was written, then `expect` all that was due, then `compare`."""

    def __init__(
        self,
        database: duckdb.DuckDBPyConnection,
        columns: Sequence[PaymentSchema],
        start: Mapping[int, int],
        end: Mapping[int, int],
        examples: int,
        results: Collection[str] = (),
    ) -> None:
        """Books for the offsets `start` to before `end` of each partition; `examples` findings of each kind are kept.

        `columns` are the fields of flagged records, by the number of the rules; `results` the filter's own of these.
        """
        self._names = [("key", *(field.name for field in schema.fields)) for schema in columns]
        self._start, self._end = dict(start), dict(end)
        self._slices, self._shift = 0, dict[int, int]()
        for numbers in in_groups(end):
            self._shift |= {number: self._slices * _SLICE - start[number] for number in numbers}
            self._slices += 1 + max(end[number] - start[number] for number in numbers) // _SLICE
        self._last: dict[int, int] = {}
        self._limit, self._results = examples, frozenset(results)
        self._database = database
        for table in ("seen", "due"):
            database.execute(f"CREATE TABLE {table} {_TABLE}")
        database.execute("CREATE TABLE writes (writer BIGINT, at_ms BIGINT)")
        self._seen, self._due, self._writes = map(database.appender, ("seen", "due", "writes"))
        #: By what should become of payments, by kind of finding, and by name of a figure.
        self._counts: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._examples: dict[str, list[Finding]] = {kind: [] for kind in _FINDINGS}

    def covers(self, source: Source) -> bool:
        """Whether the payment lies in the audited range; the topic is the caller's to compare."""
        number = source.partition
        return number in self._end and self._start[number] <= source.offset < self._end[number]

    def see_writer(self, source: Source, appended_ms: int) -> None:
        """Notes which writer wrote a decision, and when it was appended."""
        if source.writer:
            self._writes.append_row(source.writer, appended_ms)

    def see(self, source: Source, content: Sequence[Any] | None, rules: tuple[str, ...] = (), version: int = 0) -> None:
        """Notes a decision, judged by the rules of number `version`.

        Args:
            content: key and fields, or of a rejected record key and value; None where these can't be read.
            rules: those that it names. A reason to reject other than the oracle's is no fault: texts may differ.
        """
        self._last[source.partition] = max(self._last.get(source.partition, -1), source.offset)
        told = source.reason if source.decision == REJECT else _written(rules)
        self._seen.append_row(
            self._slice(source.partition, source.offset), source.partition, source.offset, version, source.decision,
            source.timestamp_ms, told, b"" if content is None else _hashes(content), None,
        )  # fmt: skip

    def see_outdated(self, source: Source) -> None:
        """Notes a decision by rules that were replaced before the payment came; it stands in for no other decision."""
        self._counts["written"] += source.decision == FLAG
        self._counts["approved"] += source.decision == APPROVE
        verb = _VERBS[source.decision]
        reason = f"{verb} by the rules of version {source.version}, which were replaced before it came"
        self.find("unexpected", source.partition, source.offset, reason)

    def begin_at(self, start: Mapping[int, int]) -> None:
        """Moves the start of partitions whose first records were removed since: decisions on these are left out."""
        for number, at in start.items():
            if at > self._start[number]:
                self._start[number] = at
                self._seen.flush()
                self._database.execute("DELETE FROM seen WHERE part = ? AND place < ?", (number, at))

    def expect(
        self,
        place: Place,
        key: bytes | None,
        value: bytes | None,
        decision: Decision,
        version: int = 0,
        *,
        is_due: bool = True,
        can_tell: bool = True,
        approves: bool = False,
    ) -> None:
        """Notes what should become of a payment by the rules of number `version`.

        Args:
            is_due: these rules had to decide it; others were right to do so, too.
            can_tell: it is known whether a valid payment is to be flagged.
            approves: one that no rule matches is to be written, too.
        """
        kind, told, content = PASS, None, None
        if decision.failure:
            kind, told = FAILED, decision.failure
        elif decision.reason is not None:
            kind, told, content = REJECT, decision.reason, _hashes((key, value))
        elif not can_tell:
            kind = UNTOLD
        elif decision.rules or approves:
            kind = FLAG if decision.rules else APPROVE
            told, content = _written(decision.rules), _hashes((key, *decision.fields))
        self._counts["truncated"] += is_due and bool(decision.truncated)
        self._expect(place, version, kind, told, content, is_due)

    def expect_row(self, place: Place, kind: str, value: Hashable = None, *, is_due: bool = True) -> None:
        """Notes what a query of the user's should make of a record.

        Args:
            kind: ROW, PASS or FAILED.
            value: of the row, None for any; or why it can't be judged.
            is_due: a row that is not may be written, too.
        """
        told = str(value) if kind == FAILED else None
        self._expect(place, 0, kind, told, None if value is None else _hashes((value,)), is_due)

    def _expect(
        self, place: Place, version: int, kind: str, told: str | None, content: bytes | None, is_due: bool
    ) -> None:
        number, offset, at_ms = place
        if kind == FAILED and is_due:
            self.find("unjudged", number, offset, str(told))
        self._counts[kind] += is_due
        self._due.append_row(self._slice(number, offset), number, offset, version, kind, at_ms, told, content, is_due)

    def find(self, kind: str, partition: int, offset: int, reason: str) -> None:
        """Notes a finding."""
        self._counts[kind] += 1
        if len(self._examples[kind]) < self._limit:
            self._examples[kind].append(Finding(partition, offset, reason))

    def compare(self) -> dict[str, Any]:
        """Joins both tables; the figures of `AuditResult` that follow from them, by their names there."""
        self._seen.flush()
        self._due.flush()
        self._writes.flush()
        for number in range(self._slices):
            self._database.execute(_JUDGE, {"slice": number})
            for one in self._ask(_FOUND):
                names = self._differences(one)
                self._counts["differing"] += one["kind"] != REJECT and not self._results.isdisjoint(names)
                is_new = one["place"] > self._last.get(one["part"], -1)
                self._counts["undecided"] += one["finding"] == "lost" and is_new
                self.find(one["finding"], one["part"], one["place"], _reason(one, names))
            for one in self._ask(_COUNTS):
                self._counts.update(one)
            self._reasons.update({one["reason"]: one["payments"] for one in self._ask(_REASONS)})
        counts = self._counts
        features = FeatureCounts(counts["compared"], counts["differing"], counts[UNTOLD], counts["truncated"])
        return {
            **{name: counts[name] for name in (*_FINDINGS, "written", "approved", "rejected", "undecided")},
            "expected": counts[FLAG] + counts[ROW],
            "approved_expected": counts[APPROVE],
            "rejected_expected": counts[REJECT],
            "late_writes": next(self._ask(_LATE))["late"],
            "reject_reasons": dict(sorted(self._reasons.items())),
            "features": features if self._results else None,
            "examples": {kind: tuple(found) for kind, found in self._examples.items()},
        }

    def _slice(self, partition: int, offset: int) -> int:
        return (offset + self._shift[partition]) // _SLICE

    def _ask(self, query: str) -> Iterator[dict[str, Any]]:
        for batch in self._database.sql(query).to_arrow_reader(_ROWS_AT_ONCE):
            yield from batch.to_pylist()

    def _differences(self, one: Mapping[str, Any]) -> list[str]:
        """The names of the parts in which the content differs."""
        if one["verdict"] != "different" or not one["content"]:
            return []
        names = {REJECT: ("key", "value"), ROW: ("value",)}.get(one["kind"]) or self._names[one["version"]]
        pairs = zip(names, memoryview(one["content"]).cast("I"), memoryview(one["due_content"]).cast("I"), strict=True)
        return [name for name, its, due in pairs if its != due]


#: Why a decision is uncalled for, by what should have become of the payment.
_UNCALLED = {None: "there is no such record", PASS: "nothing is due", UNTOLD: "the record is valid"}


def _reason(one: Mapping[str, Any], names: Sequence[str]) -> str:
    """What is wrong with a decision; `names` are the parts of its content that differ."""
    kind, due_kind, its = one["kind"], one["due_kind"], _told(one["kind"], one["told"])
    if one["finding"] == "duplicated":
        return f"{_VERBS[kind]} again"
    if one["finding"] == "lost":
        return f"should be {its}"
    if one["verdict"] == "another time":
        return f"written with source.timestamp {one['at_ms']}, but the record's is {one['due_ms']}"
    if due_kind in _UNCALLED:
        return f"{its}, but {_UNCALLED[due_kind]}"
    if one["content"] == b"":
        return f"{_VERBS[kind]} with a value that is not a record with rules"
    if one["verdict"] == "uncalled for" or (kind in _VALID and one["told"] != one["due_told"]):
        return f"{its} instead of {_told(due_kind, one['due_told'])}"
    return f"written with another {', '.join(names)} than expected"


def _told(kind: str, told: str | None) -> str:
    """A decision and its cause: the rules that match, or the reason to reject."""
    if kind == REJECT:
        return f"rejected as {told}"
    rules = ", ".join(json.loads(told or "[]"))
    return f"{_VERBS[kind]} by {rules}" if rules else _VERBS[kind]


@lru_cache(1000)
def _written(rules: tuple[str, ...]) -> str:
    return json.dumps(rules)


def _hashes(values: Sequence[Any]) -> bytes:
    """32 bits of each, of this process alone; -1 and -2, 1 and 1.0, and None and 'None' differ."""
    hashes = [
        hash(value if type(value) is str or type(value) is bytes else (repr(value),)) & 0xFFFFFFFF for value in values
    ]
    return struct.pack(f"{len(hashes)}I", *hashes)
