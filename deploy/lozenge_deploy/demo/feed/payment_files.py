"""Payments in Parquet files, as an acquirer would deliver them while records of others come by Kafka."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lozenge.errors import UsageError
from lozenge_deploy.demo.feed.population import SECOND
from lozenge_deploy.demo.feed.written_records import Raw

SUFFIX = ".parquet"
_TEXTS = (
    *("txn_id", "ts", "pan", "account", "merchant", "terminal"),
    *("mcc", "country", "amount", "currency", "channel", "result", "device"),
)
COLUMNS = {**dict.fromkeys(_TEXTS, "string"), "lat": "double", "lon": "double"}
"""The fields of a record of AUTH-JSON, and the types of their columns."""
KEY = "pan"
EVERY = 2
"""After so many live records one payment goes into a file."""
_FILE_SECONDS, _FILE_ROWS, _GROUP_ROWS = 5, 10_000, 100
_KINDS: dict[str, pa.DataType] = {"string": pa.string(), "double": pa.float64()}
_SCHEMA = pa.schema([(name, _KINDS[kind]) for name, kind in COLUMNS.items()])


class PaymentFiles:
    """Writes a file for each five seconds of live traffic; a file has its name once it is complete.

    `payment` makes the payment of a time, in microseconds since 1970. Raises UsageError where `folder` cannot be
    written.
    """

    def __init__(self, folder: Path, payment: Callable[[int], Raw]) -> None:
        self._folder, self._payment = folder, payment
        self._rows: list[dict[str, object]] = []
        self._began = 0

    def alongside(self, times: Iterable[int]) -> Iterator[int]:
        """The `times` of live traffic; for some of them a payment goes into the files too."""
        for number, at in enumerate(times, 1):
            if number % EVERY == 0:
                self._add(at)
            yield at

    def close(self) -> None:
        """Writes the file that is not complete yet, if it has a row."""
        if not self._rows:
            return
        name = f"{self._began}{SUFFIX}"
        part = self._folder / f".{name}"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.Table.from_pylist(self._rows, _SCHEMA), part, row_group_size=_GROUP_ROWS)
            part.rename(part.with_name(name))
        except OSError as error:
            with suppress(OSError):
                part.unlink()
            raise UsageError(
                f"writing a file of payments in {self._folder}: {error.strerror or error}",
                hint="name a folder on a disk that has space, or leave --files out",
            ) from error
        self._rows = []

    def _add(self, at: int) -> None:
        if self._rows and (at >= self._began + _FILE_SECONDS * SECOND or len(self._rows) >= _FILE_ROWS):
            self.close()
        if not self._rows:
            self._began = at
        self._rows.append(msgspec.json.decode(self._payment(at).value))
