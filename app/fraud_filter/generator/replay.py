"""A file's records, sent as a source: DuckDB reads them, a SELECT shapes them, the payment schema types them."""

from __future__ import annotations

import glob
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from fraud_filter.errors import UsageError
from fraud_filter.generator.source import Batch, Pace, encoded
from fraud_filter.schema import Field, PaymentSchema
from fraud_filter.text.ddl import WHOLE, Kind

#: What a SELECT calls the file.
TABLE = "file"

#: A column of this name is the record's key; the schema reserves names with `_`. Without one the card's id is it, as
#: for made-up payments: a card's payments stay in one partition.
KEY, _CARD = "_key", "card_id"

_SHIPPED = Path(__file__).parent / "selects"

_READERS = {
    # Nothing is guessed: an uneven row would become the header, and the rows before it be left out. All columns are
    # text, for the schema to type.
    ".csv": "read_csv({path}, all_varchar = true, header = true, skip = 0, delim = ',', quote = '\"', escape = '\"', "
    "comment = '', allow_quoted_nulls = false)",
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "read_json({path}, columns = {columns})"),
    ".parquet": "read_parquet({path})",
}

#: Integers, also as a column of DOUBLE shows them.
_INTEGER = r"[+-]?[0-9]+(\.0*)?"

#: A decimal number of so many digits is the same after a DOUBLE, which is what JSON's readers take.
_DIGITS = 15

#: A distance from UTC, after a time.
_ZONE = r":[0-9]{2}(\.[0-9]+)?[+-](0[1-9]|1[0-9]|00:?(0[1-9]|[1-9]))"

_COMPRESSED = (".gz", ".zst")

#: JSON has times and UUIDs as text, and so has a SELECT: DuckDB's guess would change how they are written.
_GUESSED = re.compile(r"(?:^|(?<= ))(?:DATE|TIME|TIMESTAMP|TIMESTAMP WITH TIME ZONE|UUID)(?=[],)[]|$)")

_SETTINGS = (
    # One thread is fast enough, and leaves the others to what is measured; a small buffer holds up the sender for 2 ms,
    # the default for 40.
    "SET threads = 1; SET streaming_buffer_size = '64KB'; SET TimeZone = 'UTC'; "
    "SET autoinstall_known_extensions = false"
)


class Selection:
    """The records that a SELECT makes of a file, typed by the schema.

    Attributes:
        fields: names of the fields that the records carry, in the order of the schema.
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
        # Read as an integer, 1.5 would be rounded; read as text, 1.50 would become "1.5".
        kinds = {field.name.lower(): "JSON" if _is_raw(field) else _duck(field.kind) for field in schema.fields}
        with self._explained():
            path.open("rb").close()
            self._open({} if select else kinds)
        self._sql = _read(select) if select else f"SELECT * FROM {TABLE}"  # noqa: S608 - our own word
        with self._explained(f"--select {select}, " if select else ""):
            columns = {name.lower(): name for name in self._columns(f"({self._sql}\n)")}
        there = [field for field in schema.fields if field.name.lower() in columns]
        missing = [name for name in schema.required if name.lower() not in columns]
        if missing:
            raise UsageError(
                f"--replay {path}: there is no column {missing[0]!r}; there are "
                f"{', '.join(map(repr, columns.values()))}. Give it with --select: {', '.join(shipped())}, or a SELECT"
            )
        self.fields = [field.name for field in there]
        times = [field.name for field in there if field.type in ("TIMESTAMP", "TIMESTAMP_NTZ")]
        self.time_field = "created_at" if "created_at" in times else next(iter(times), None)
        self._query = self._typed(there, next((name for name in (KEY, _CARD) if name in columns), None))

    def rows(self, size: int) -> Iterator[list[tuple[Any, ...]]]:
        """Lists of at most `size` rows in the file's order: key, time in ms since 1970, the fields.

        Raises:
            UsageError: a row can't be read or typed; names the file and the column.
        """
        with self._explained():
            cursor = self._database.execute(self._query)
            while rows := cursor.fetchmany(size):
                yield rows

    def _open(self, kinds: dict[str, str]) -> None:
        """Makes the file the table; JSON columns have these types, or what DuckDB sees in them."""
        suffixes = [suffix.lower() for suffix in self._path.suffixes]
        kind = suffixes[-2] if len(suffixes) > 1 and suffixes[-1] in _COMPRESSED else (suffixes or [""])[-1]
        if kind not in _READERS:
            raise UsageError(f"--replay {self._path}: its name must end with {', '.join(_READERS)}")
        path = _text(glob.escape(str(self._path)))
        columns = ""
        if "columns" in _READERS[kind]:
            seen = self._columns(f"read_json({path})")
            typed = {name: kinds.get(name.lower()) or _GUESSED.sub("VARCHAR", seen[name]) for name in seen}
            columns = "{" + ", ".join(f"{_text(name)}: {_text(typed[name])}" for name in typed) + "}"
        reader = _READERS[kind].format(path=path, columns=columns)
        self._database.execute(f"CREATE VIEW {TABLE} AS FROM {reader}")

    def _columns(self, relation: str) -> dict[str, str]:
        """The columns' types by name."""
        described = self._database.execute(f"DESCRIBE FROM {relation}").fetchall()
        return {name: kind for name, kind, *_ in described}

    def _typed(self, fields: list[Field], key: str | None) -> str:
        types = {field.name: _duck(field.kind) for field in fields}
        checked = [f"{_checked(field, types[field.name])} AS {_name(field.name)}" for field in fields]
        key = "NULL" if key is None else _as_text(_name(key))
        time = "NULL" if self.time_field is None else f"epoch_ms({_name(self.time_field)})"
        read = [f"CAST({_name(field.name)} AS {_taken(types[field.name])})" for field in fields]
        return (
            f"WITH chosen AS ({self._sql}\n), typed AS (SELECT CAST({key} AS VARCHAR) AS {KEY}, "  # noqa: S608
            f"{', '.join(checked)} FROM chosen) SELECT {KEY}, {time}, {', '.join(read)} FROM typed"
        )

    @contextmanager
    def _explained(self, where: str = "") -> Iterator[None]:
        try:
            yield
        except (OSError, duckdb.Error) as error:
            said = " ".join(str(error).split("\n\n")[0].split()).removeprefix("Invalid Input Error: ")
            raise UsageError(f"{where}--replay {self._path} can't be read: {said}") from None


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


#: DuckDB's types for fields, where they have another name. JSON knows one kind of number.
_TYPES = {
    **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL"), "DOUBLE"),
    "STRING": "TEXT",
    "TIMESTAMP": "TIMESTAMPTZ",
    "TIMESTAMP_NTZ": "TIMESTAMP",
}


def _duck(kind: Kind) -> str:
    """DuckDB's type in which a field is checked."""
    parts = [_duck(part) for _, part in kind.parts]
    if kind.name == "STRUCT":
        return f"STRUCT({', '.join(f'{_name(name)} {_duck(part)}' for name, part in kind.parts)})"
    if kind.name == "MAP":
        return f"MAP(TEXT, {parts[0]})"
    return f"{parts[0]}[]" if kind.name == "ARRAY" else _TYPES.get(kind.name, kind.name)


def _taken(kind: str) -> str:
    """The type in which Python takes it over: times in UTC, those without a zone as text."""
    return re.sub(r"\bTIMESTAMP\b", "VARCHAR", kind).replace("TIMESTAMPTZ", "TIMESTAMP")


def _is_raw(field: Field) -> bool:
    """Whether a file of JSON gives the field as it is written."""
    return field.type in (*WHOLE, "STRING")


def _as_text(name: str) -> str:
    """The column as text; one that is read as JSON without the quotes."""
    return f"CASE WHEN typeof({name}) = 'JSON' THEN {name}::JSON->>'$' ELSE {name}::VARCHAR END"


def _checked(field: Field, kind: str) -> str:
    """The value as this type; what is none, or would become another value, ends the replay in words."""
    name, is_text = _name(field.name), kind == "TEXT"
    raw = f"{name}::VARCHAR"
    given = f"{name} IS NOT NULL" + ("" if is_text else f" AND {raw} <> ''")

    def refused(why: str) -> str:
        return f"error({_text(f'column {field.name!r}: ')} || {raw} || {_text(f' {why}')})"

    value = f"TRY_CAST({raw if field.type in WHOLE else name} AS {kind})"
    flaws = [(f"typeof({name}) = 'BLOB'", "is binary; give base64(…) of it with --select")]
    if field.type == "STRING":
        value = _as_text(name)
        flaws.append((f"typeof({name}) = 'JSON' AND json_type({name}::JSON) = 'DOUBLE'", "is no text but a number"))
    elif field.type in WHOLE:
        flaws.append((f"NOT regexp_full_match(trim({raw}), '{_INTEGER}')", f"is no {field.type}"))
    elif kind == "DOUBLE":
        flaws.append((f"NOT isfinite({value})", "is a number that JSON can't say"))
        if field.kind.name == "DECIMAL":
            most = _DIGITS - field.kind.scale
            flaws.append((f"abs({value}) >= 1e{most}", f"has more than {_DIGITS} digits, of which some would change"))
    elif kind in ("TIMESTAMP", "TIMESTAMPTZ", "DATE"):
        is_far = f"{value} IS NOT NULL AND coalesce(year({value}), 0) NOT BETWEEN 1 AND 9999"
        flaws.append((is_far, "is not within the years 1 to 9999"))
        if field.type == "TIMESTAMP_NTZ":
            flaws.append((f"regexp_matches({raw}, '{_ZONE}')", "has a zone, which TIMESTAMP_NTZ has not"))
    cases = " ".join(f"WHEN {given} AND {test} THEN {refused(why)}" for test, why in flaws)
    none = f"WHEN {given} AND {value} IS NULL THEN {refused(f'is no {field.type}')}"
    return f"CASE {cases} {none} ELSE {value} END"


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
            UsageError: a row can't be read or typed; names the file and the column.
        """
        sent = 0
        recorded = _RecordedPace(self._speed)
        for rows in self._selection.rows(_BATCH):
            if self._pace is None:
                due_s = recorded.due_s(np.array([row[1] for row in rows], dtype=np.float64))
            else:
                due_s = self._pace.due_s(sent, len(rows))
            yield self._encode(rows, due_s)
            sent += len(rows)

    def _encode(self, rows: list[tuple[Any, ...]], due_s: NDArray[np.float64]) -> Batch:
        keys = [None if key is None else key.encode() for key, *_ in rows]
        names = self._selection.fields
        values: list[bytes | None] = [encoded(dict(zip(names, row[2:], strict=True))) for row in rows]
        return Batch(due_s, keys, values, flagged=None, malformed=np.zeros(len(rows), dtype=np.bool_))


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
