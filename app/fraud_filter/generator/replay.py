"""A file's records, sent as a source: DuckDB reads them, and a SELECT shapes them. No value changes on the way: one
that does not fit the payment schema is sent as it is, and the filter rejects it.
"""

from __future__ import annotations

import glob
import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from fraud_filter.errors import UsageError
from fraud_filter.generator.source import Batch, Pace
from fraud_filter.model.saved import NUMBERS
from fraud_filter.schema import Field, PaymentSchema

#: What a SELECT calls the file.
TABLE = "file"

#: A column of this name is the record's key; the schema reserves names with `_`. Without one the card's id is it, as
#: for made-up payments: a card's payments stay in one partition.
KEY, _CARD = "_key", "card_id"

_SHIPPED = Path(__file__).parent / "selects"

_JSON = (".jsonl", ".ndjson", ".json")

_READERS = {
    # Nothing is guessed: an uneven row would become the header, and the rows before it be left out.
    ".csv": "read_csv({path}, all_varchar = true, header = true, skip = 0, delim = ',', quote = '\"', escape = '\"', "
    "comment = '', allow_quoted_nulls = false)",
    **dict.fromkeys(_JSON, "read_json({path}, columns = {columns})"),
    ".parquet": "read_parquet({path})",
}

_COMPRESSED = (".gz", ".zst")

#: JSON has times and UUIDs as text, and so has a SELECT: DuckDB's guess would change how they are written.
_GUESSED = re.compile(r"(?:^|(?<= ))(?:DATE|TIME|TIMESTAMP|TIMESTAMP WITH TIME ZONE|UUID)(?=[],)[]|$)")

#: A text that JSON has without quotes.
_BARE = re.compile(r"true|false|-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")

_SETTINGS = (
    # One thread is fast enough, and leaves the others to what is measured; a small buffer holds up the sender for 2 ms,
    # the default for 40.
    "SET threads = 1; SET streaming_buffer_size = '64KB'; SET TimeZone = 'UTC'; "
    "SET autoinstall_known_extensions = false"
)


class Selection:
    """The records of a file, or those that a SELECT makes of its rows.

    Attributes:
        time_field: the field that tells when a record was made: created_at, else the first TIMESTAMP; or None.
    """

    def __init__(self, path: Path, select: str | None, schema: PaymentSchema) -> None:
        """Opens the file and checks the columns.

        Args:
            path: what its format is, its name says: .csv, .jsonl (.ndjson, .json), .parquet; .gz or .zst after it.
            select: a shipped one by its name, a file with a SELECT, or the SELECT; None: the columns as they are.
            schema: the fields of a record.

        Raises:
            UsageError: the file can't be read, DuckDB refuses the SELECT, or a required field is missing.
        """
        self._path = path
        self._database = duckdb.connect()
        self._database.execute(_SETTINGS)
        with self._explained():
            path.open("rb").close()
            is_json = self._open()
        sql = _read(select) if select else f"SELECT * FROM {TABLE}"  # noqa: S608 - our own word
        with self._explained(f"--select {select}, " if select else ""):
            seen = self._columns(f"({sql}\n)")
        as_written = is_json and not select
        fold = str if as_written else str.lower
        names = {fold(name): name for name in seen}
        there = [field for field in schema.fields if fold(field.name) in names]
        missing = [name for name in schema.required if fold(name) not in names]
        if missing:
            raise UsageError(
                f"--replay {path}: there is no column {missing[0]!r}; there are {', '.join(map(repr, seen))}. Give it "
                f"with --select: {', '.join(shipped())}, or a SELECT"
            )
        times = [field.name for field in there if field.type in ("TIMESTAMP", "TIMESTAMP_NTZ")]
        self.time_field = "created_at" if "created_at" in times else next(iter(times), None)
        self._fields = [] if as_written else there

        def text(name: str | None, parts: object = ()) -> str:
            """A column as text; as JSON where it has `parts`."""
            if name is None:
                return "NULL"
            if as_written:
                return f"json->>{_text(name)}"
            name = names[fold(name)]
            if seen[name] == "BLOB":
                raise UsageError(f"--replay {path}: column {name!r} is binary; give base64(…) of it with --select")
            if parts:
                return f"to_json({_name(name)})::VARCHAR"
            return f"{_name(name)}->>'$'" if seen[name] == "JSON" else f"{_name(name)}::VARCHAR"

        key = text(next((name for name in (KEY, _CARD) if name in names), None))
        time = f"epoch_ms(TRY_CAST({text(self.time_field)} AS TIMESTAMPTZ))"
        columns = ["json"] if as_written else [text(field.name, field.kind.parts) for field in there]
        relation = f"read_json_objects({_text(glob.escape(str(path)))})" if as_written else f"({sql}\n)"
        self._query = f"SELECT {key}, {time}, {', '.join(columns)} FROM {relation}"  # noqa: S608

    def records(self, size: int) -> Iterator[list[tuple[str | None, float | None, bytes]]]:
        """Lists of at most `size` records in the file's order: key, time in ms since 1970, value.

        Raises:
            UsageError: a row can't be read; names the file.
        """
        with self._explained():
            cursor = self._database.execute(self._query)
            while rows := cursor.fetchmany(size):
                yield [(key, time, self._value(texts)) for key, time, *texts in rows]

    def _value(self, texts: list[str | None]) -> bytes:
        if not self._fields:  # JSON, as it is written
            return (texts[0] or "").encode()
        members = (f"{json.dumps(one.name)}:{_token(one, text)}" for one, text in zip(self._fields, texts, strict=True))
        return f"{{{','.join(members)}}}".encode()

    def _open(self) -> bool:
        """Makes the file the table; whether it is one of JSON."""
        suffixes = [suffix.lower() for suffix in self._path.suffixes]
        kind = suffixes[-2] if len(suffixes) > 1 and suffixes[-1] in _COMPRESSED else (suffixes or [""])[-1]
        if kind not in _READERS:
            raise UsageError(f"--replay {self._path}: its name must end with {', '.join(_READERS)}")
        path = _text(glob.escape(str(self._path)))
        columns = ""
        if kind in _JSON:
            seen = self._columns(f"read_json({path})")
            typed = {name: _GUESSED.sub("VARCHAR", seen[name]) for name in seen}
            columns = "{" + ", ".join(f"{_text(name)}: {_text(typed[name])}" for name in typed) + "}"
        reader = _READERS[kind].format(path=path, columns=columns)
        self._database.execute(f"CREATE VIEW {TABLE} AS FROM {reader}")
        return kind in _JSON

    def _columns(self, relation: str) -> dict[str, str]:
        """The columns' types by name."""
        described = self._database.execute(f"DESCRIBE FROM {relation}").fetchall()
        return {name: kind for name, kind, *_ in described}

    @contextmanager
    def _explained(self, where: str = "") -> Iterator[None]:
        try:
            yield
        except (OSError, duckdb.Error) as error:
            said = " ".join(str(error).split("\n\n")[0].split()).removeprefix("Invalid Input Error: ")
            raise UsageError(f"{where}--replay {self._path} can't be read: {said}") from None


def _token(field: Field, text: str | None) -> str:
    """A column's text as JSON: as it is where a number or a BOOLEAN may stand so, in quotes elsewhere."""
    if text is None or (text == "" and field.type != "STRING"):
        return "null"
    is_bare = field.kind.parts or (field.type.startswith(NUMBERS) and _BARE.fullmatch(text))
    return text if is_bare else json.dumps(text, ensure_ascii=False)


def shipped() -> list[str]:
    """Names of the SELECTs that come with the program."""
    return sorted(path.stem for path in _SHIPPED.glob("*.sql"))


def _read(select: str) -> str:
    """The SQL of a shipped SELECT, of a file, or itself."""
    if select not in shipped() and len(select.split()) > 1:
        return select.strip().rstrip(";")
    path = _SHIPPED / f"{select}.sql" if select in shipped() else Path(select)
    try:
        return path.read_text(encoding="utf-8-sig").strip().rstrip(";")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        advice = f"give a file, a query of the table {TABLE!r}, or {', '.join(shipped())}"
        raise UsageError(f"--select {select} can't be read: {reason}; {advice}") from None


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


#: Rows encoded at once: few enough to hold up the sender for about a millisecond only.
_BATCH = 200


class Replay:
    """A source of recorded payments; it ends with the file.

    The payments keep their own times: `created_at` is what the file says.
    """

    seed: int | None = None

    def __init__(
        self,
        file: Path,
        schema: PaymentSchema,
        *,
        select: str | None = None,
        pace: Pace | None = None,
        speed: float = 1,
    ) -> None:
        """Opens the file and checks its columns.

        Args:
            file: CSV, JSON lines or Parquet.
            schema: what a payment must carry.
            select: what makes records of the rows (see Selection); without one, columns are named like fields.
            pace: when payments are due; without one, as recorded.
            speed: multiple of the recorded pace: 60 replays an hour in a minute.

        Raises:
            UsageError: the file or the SELECT can't be used; names the column.
        """
        if not 0 < speed < math.inf:
            raise UsageError(f"--speed {speed:g} is not accepted: give a multiple of the recorded pace, such as 1")
        self._selection = Selection(file, select, schema)
        if pace is None and self._selection.time_field is None:
            raise UsageError(f"--replay {file}: records without a time have no recorded pace; give --rate")
        self._pace = pace
        self._speed = speed

    def batches(self, start_ms: int) -> Iterator[Batch]:  # noqa: ARG002 - recorded times stay as they are
        """See Source.

        Raises:
            UsageError: a row can't be read; names the file.
        """
        sent = 0
        recorded = _RecordedPace(self._speed)
        for records in self._selection.records(_BATCH):
            if self._pace is None:
                due_s = recorded.due_s(np.array([time for _, time, _ in records], dtype=np.float64))
            else:
                due_s = self._pace.due_s(sent, len(records))
            keys = [None if key is None else key.encode() for key, *_ in records]
            malformed = np.zeros(len(records), dtype=np.bool_)
            yield Batch(due_s, keys, [value for *_, value in records], flagged=None, malformed=malformed)
            sent += len(records)


class _RecordedPace:
    """Distances between recorded times; rows that go back in time are due with the latest before them."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._first_ms: float | None = None
        self._latest_s = 0.0

    def due_s(self, ms: NDArray[np.float64]) -> NDArray[np.float64]:
        """Seconds after the first row, for times in ms; without one (NaN), due with the row before."""
        if self._first_ms is None:
            known = ms[~np.isnan(ms)]
            if len(known) == 0:
                return np.zeros(len(ms))
            self._first_ms = float(known[0])
        due = np.nan_to_num((ms - self._first_ms) / 1000 / self._speed, nan=0.0)
        due = np.maximum(np.maximum.accumulate(due), self._latest_s)
        self._latest_s = float(due[-1]) if len(due) else self._latest_s
        return due
