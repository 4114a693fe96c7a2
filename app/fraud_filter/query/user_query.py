"""A function of the user's as a query: `DataFrame -> DataFrame`, called where the query is planned, on the driver."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fraud_filter.config import Settings, refused
from fraud_filter.errors import UsageError
from fraud_filter.query.query import Query
from fraud_filter.schema import PaymentSchema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from fraud_filter.query.once import Written

#: What the module may say itself of a record, for the audit (`audit.rows`).
Expect = Callable[[Any], object]
#: What the function gets.
SOURCE_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")
_HEADERS = "array<struct<key:string,value:binary>>"
#: What it may return, and of which types.
_SINK_COLUMNS = {
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "topic": ("string",),
    "headers": (_HEADERS,),
}
_RETURN = (
    f"return value (string or binary), and where you want them key (the same), topic (string), headers ({_HEADERS}); "
    "what else there is belongs into value"
)
_EXAMPLE = "give my_package.my_module:transform or my_query.py:transform"
_EARLY = "mend it there; the module is imported before Spark starts, so call Spark's functions within yours"
_DIGITS = 12


@dataclass(frozen=True, kw_only=True)
class UserQuery(Query):
    """Calls a function of the module in `file`; `reference` is what the setting says, `expect` is for the audit.

    `planned` are the rows that the function made, with the place of each row's record; or `without_places` says why
    that is not known.
    """

    reference: str
    file: str
    function: Callable[[DataFrame], object]
    expect: Expect | None = None
    planned: DataFrame | None = None
    without_places: str = ""

    def to_document(self) -> dict[str, Any]:
        """Where the function is."""
        return {"query": self.reference}

    def decide(self, records: DataFrame, settings: Settings, topic_id: str, written: Written, **_: object) -> DataFrame:
        """What was `planned`, of these `records`, with headers of the place of their record, if that is known."""
        from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

        from fraud_filter.query import places

        assert self.planned is not None  # noqa: S101 - it is planned before anything else is done with it
        rows = places.read_from(records, self.planned)
        *others, headers = _sink_columns(rows, settings)
        if self.without_places:
            return rows.select(*others, headers)
        own = F.array(*places.place_headers(topic_id))
        return rows.where(written.is_new()).select(*others, F.concat(headers, own).alias("headers"))

    def plan(self, rows: DataFrame, records: DataFrame) -> UserQuery:
        """The query with the `rows` planned that its function made of `records`."""
        from fraud_filter.query import places

        try:
            return replace(self, planned=places.carry(rows, records))
        except places.UnknownPlacesError as reason:
            return replace(self, planned=rows, without_places=str(reason))

    def rows(self, records: DataFrame, settings: Settings) -> DataFrame:
        """What the function returns.

        Raises:
            UsageError: it raises, or returns something else than rows that the Kafka sink takes.
        """
        from py4j.protocol import Py4JNetworkError
        from pyspark.sql import DataFrame
        from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

        records.sparkSession.conf.set("spark.sql.shuffle.partitions", str(settings.velocity_partitions))
        given = records.select(*(F.col(f"_{name}").alias(name) for name in SOURCE_COLUMNS))
        try:
            rows = self.function(given)
        except Py4JNetworkError:  # Java is gone
            raise
        except Exception as error:
            raise _raised(self.reference, self.file, error) from None
        if not isinstance(rows, DataFrame):
            raise self._refused(f"returns a {type(rows).__name__}", "return a DataFrame made of the one that it gets")
        if not rows.isStreaming:
            raise self._refused("returns rows that are not made of its records", "use the DataFrame that it gets")
        if len(set(rows.columns)) < len(rows.columns) or "value" not in rows.columns:
            raise self._refused(f"returns the columns {', '.join(rows.columns)}", _RETURN)
        for name, kind in rows.dtypes:
            if kind not in _SINK_COLUMNS.get(name, ()):
                raise self._refused(f"returns {name!r} as {kind}, which the Kafka sink does not take", _RETURN)
        return rows

    def _refused(self, reason: str, remedy: str) -> UsageError:
        return refused("query", self.reference, f"({self.file}) {reason}", remedy)


def _sink_columns(rows: DataFrame, settings: Settings) -> list[Column]:
    """`key`, `value`, `topic`, `headers` of the rows that a function returned."""
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    there = set(rows.columns)
    key = F.col("key") if "key" in there else F.lit(None)
    topic = F.lit(settings.flagged_topic)
    headers = F.array().cast(_HEADERS)
    return [
        key.cast("binary").alias("key"),
        F.col("value").cast("binary").alias("value"),
        (F.coalesce("topic", topic) if "topic" in there else topic).alias("topic"),
        (F.coalesce("headers", headers) if "headers" in there else headers).alias("headers"),
    ]


def load_user_query(settings: Settings) -> UserQuery:
    """Imports the module of the setting `query`, and finds its function.

    Raises:
        UsageError: there is no such module or function, or the import raises.
    """
    reference = settings.query
    if settings.source != "kafka":
        raise refused("source", settings.source, "is for the fraud filter", "a query of yours reads kafka")
    place, _, name = reference.rpartition(":")
    if not place or not name.isidentifier():
        raise refused("query", reference, "names no function", _EXAMPLE)
    module = _import(reference, place)
    function, file = getattr(module, name, None), getattr(module, "__file__", None)
    if not callable(function) or not file:
        raise refused("query", reference, f"is not there: {file or place} has no function {name}", "name one of it")
    content = Path(file).read_bytes() + name.encode()
    return UserQuery(
        version=hashlib.sha256(content).hexdigest()[:_DIGITS],
        origin=reference,
        described={"function": reference},
        schema=PaymentSchema(()),
        reference=reference,
        file=file,
        function=function,
        expect=getattr(module, "expect", None),
    )


def _import(reference: str, place: str) -> ModuleType:
    """The module of a file or of a dotted name, whose functions Spark's tasks get with their code."""
    from pyspark import cloudpickle

    file = Path(place).absolute()
    if place.endswith(".py") and not file.is_file():
        raise refused("query", reference, f"is not there: {file}", _EXAMPLE)
    sys.path.append(str(file.parent) if place.endswith(".py") else str(Path.cwd()))
    try:
        module = _execute(file) if place.endswith(".py") else importlib.import_module(place)
    except ModuleNotFoundError as error:
        raise refused("query", reference, f"can't be imported: {error}", f"install it, or {_EXAMPLE}") from None
    except Exception as error:
        raise _raised(reference, str(file) if place.endswith(".py") else place, error, _EARLY) from None
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return module


def _execute(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"query_{file.stem}", file)
    assert spec is not None  # noqa: S101 - the name ends with .py
    assert spec.loader is not None  # noqa: S101 - as above
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _raised(reference: str, file: str, error: Exception, remedy: str = "mend it there") -> UsageError:
    """The sentence for what the user's code raised, with the line of it."""
    frames = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    line = error.lineno if isinstance(error, SyntaxError) else frames[-1] if frames else None
    said = next((text.strip() for text in str(error).splitlines() if text.strip()), "no reason given")
    place = f"{file}, line {line}" if line else file
    return refused("query", reference, f"raises {type(error).__name__} in {place}: {said}", remedy)
