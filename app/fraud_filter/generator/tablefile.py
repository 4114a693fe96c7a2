"""Files of rows, read in batches so that they may be larger than the memory: CSV, JSON lines, Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from fraud_filter.errors import UsageError

#: Read at once: a few thousand rows. A JSON row must fit into a block.
_BLOCK_BYTES = 1 << 20
_PARQUET_ROWS = 4096

_CSV, _JSON, _PARQUET = (".csv",), (".jsonl", ".ndjson", ".json"), (".parquet",)
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")


class TableFile:
    """A file of rows. What its format is, its name says: .csv, .jsonl (.ndjson, .json), .parquet.

    CSV and JSON may be compressed (.csv.gz). CSV columns are all text: a mapping casts them by the payment
    schema, not by a guess from the first rows.
    """

    def __init__(self, path: Path) -> None:
        """Reads the column names.

        Raises:
            UsageError: the file can't be read or is of another format.
        """
        self.path = path
        suffixes = [suffix.lower() for suffix in path.suffixes]
        kind = suffixes[-2] if len(suffixes) > 1 and suffixes[-1] in _COMPRESSED else (suffixes or [""])[-1]
        if kind not in (*_CSV, *_JSON, *_PARQUET):
            raise UsageError(f"--replay {path}: its name must end with {', '.join((*_CSV, *_JSON, *_PARQUET))}")
        self._kind = kind
        with self._explained():
            names, _ = self._open(None)
            self.columns = list(names)

    def batches(self, columns: list[str]) -> Iterator[Any]:
        """The rows as pyarrow RecordBatches of (at least) these existing columns, in the file's order.

        Raises:
            UsageError: the file is damaged; names it.
        """
        with self._explained():
            _, batches = self._open(columns)
            yield from batches

    def _open(self, columns: list[str] | None) -> tuple[Sequence[str], Iterable[Any]]:
        """The names of the columns, and the batches."""
        path = str(self.path)
        if self._kind in _PARQUET:
            file = pyarrow.parquet.ParquetFile(path)
            return file.schema_arrow.names, file.iter_batches(_PARQUET_ROWS, columns=columns)
        if self._kind in _JSON:
            reader = pyarrow.json.open_json(path, read_options=pyarrow.json.ReadOptions(block_size=_BLOCK_BYTES))
            return reader.schema.names, reader
        # "NA" is a country, not a missing value: only an empty cell is one.
        options = pyarrow.csv.ConvertOptions(
            column_types={column: pa.string() for column in columns or ()},
            include_columns=columns or None,
            null_values=[""],
            strings_can_be_null=True,
        )
        reader = pyarrow.csv.open_csv(
            path, read_options=pyarrow.csv.ReadOptions(block_size=_BLOCK_BYTES), convert_options=options
        )
        return reader.schema.names, reader

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise UsageError(f"--replay {self.path} can't be read: {error}") from None
