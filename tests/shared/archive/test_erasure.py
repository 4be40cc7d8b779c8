import random
import shutil
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from lozenge.archive import erasure
from lozenge.archive.columns import PLATFORM, columns_of, raw_columns
from lozenge.archive.compaction import contents, merged, to_merge
from lozenge.archive.data_files import ROW_GROUP, write
from lozenge.archive.delta_table import ArchiveTable
from lozenge.archive.erased_rows import ErasureTarget, erased
from lozenge.archive.erasure import ErasedTable, alerts_in, erase, padded
from lozenge.contracts.schemas import newest
from lozenge.errors import NotErased
from lozenge.protocol.data_subject import ERASED, DataSubject
from tests.archive_rows import DAY as THE_DAY
from tests.archive_rows import NOW, TOPIC, VIEW
from tests.full_disk import files_of_at_most

CARD, OTHER = "card_4f1c09e27ab35d68", "card_9b3e77d01c64aa52"
SUBJECT = DataSubject("card", CARD)
MINE = ErasureTarget(SUBJECT, "card_id")
NEXT_DAY = THE_DAY.replace(day=THE_DAY.day + 1)
TEXT, NUMBER = {"type": "string"}, {"type": "double"}
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}
RAW = {"type": "record", "name": "Raw", "fields": [{"name": "source", "type": "string"}]}
EVENT = columns_of(
    {
        "fields": [
            {"name": "card_id", **TEXT},
            {"name": "note", "type": ["null", "string"]},
            {"name": "amount", "type": MONEY},
            {"name": "score", **NUMBER},
            {"name": "raw", "type": RAW},
            {"name": "labels", "type": {"type": "map", "values": "string"}},
            {"name": "others", "type": {"type": "array", "items": "string"}},
        ]
    }
)
ALERT = columns_of(newest("alert").definition)


def event(offset: int, card: str, rng: random.Random, **more: Any) -> dict[str, Any]:
    return {
        "partition": 0,
        "offset": offset,
        "timestamp": NOW,
        "ingested_at": NOW,
        "day": THE_DAY,
        "bucket": 0,
        "card_id": card,
        "note": rng.choice([None, f"paid by {OTHER}"]),
        "amount": Decimal(rng.randrange(10_000)) / 100,
        "score": rng.choice([rng.random(), float("nan"), None]),
        "raw": {"source": rng.choice(["a", "b"])},
        "labels": {"entity": f"card:{card}"},
        "others": [OTHER] * rng.randrange(3),
        **more,
    }


def events(rng: random.Random, count: int, begin: int = 0) -> pa.Table:
    found = [
        event(begin + n, CARD if rng.random() < 0.1 else f"card_{rng.randbytes(8).hex()}", rng) for n in range(count)
    ]
    return pa.Table.from_pylist(found, schema=EVENT)


def table(folder: Path, columns: pa.Schema = EVENT) -> ArchiveTable:
    return ArchiveTable.open(folder, TOPIC, VIEW, columns, 1)


def every_byte(folder: Path) -> bytes:
    """The content of every file: as it is on the disk, and of Parquet files every page after its compression too."""
    found = []
    for file in sorted(each for each in folder.rglob("*") if each.is_file()):
        found.append(file.read_bytes())
        if file.suffix == ".parquet":
            found.append(repr(pq.ParquetFile(file).read().to_pylist()).encode())
            plain = pa.BufferOutputStream()
            pq.write_table(pq.ParquetFile(file).read(), plain, compression="none", use_dictionary=False)
            found.append(plain.getvalue().to_pybytes())
    return b"".join(found)


def of_others(found: pa.Table) -> list[str]:
    """Every row but the subject's, as text: NaN is no equal number."""
    return [repr(row) for row in found.to_pylist() if row["card_id"] not in (CARD, None)]


def versions(folder: Path) -> Iterator[tuple[int, pa.Table]]:
    newest_version = DeltaTable(folder).version()
    for version in range(1, newest_version + 1):
        yield version, DeltaTable(folder, version=version).to_pyarrow_table().sort_by("offset")


@pytest.mark.parametrize("seed", range(3))
def test_others_and_every_coordinate_stay_and_no_byte_of_the_subject(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    held, ends = table(tmp_path), dict[int, int]()
    for begin in (0, 300, 600):
        held.append(events(rng, 300, begin), ends, {0: begin + 300})
        ends = {0: begin + 300}
    (small,) = to_merge(held.files(), NEXT_DAY)
    assert held.replace(small.files, merged(tmp_path, small, held.columns))
    before = dict(versions(tmp_path))
    sizes = {file: file.stat().st_size for file in tmp_path.rglob("*.parquet")}
    log = {file: file.read_bytes() for file in (tmp_path / "_delta_log").iterdir()}
    assert CARD.encode() in every_byte(tmp_path)

    counted = erase(tmp_path, MINE, dry_run=True)
    assert dict(versions(tmp_path)).keys() == before.keys()
    assert CARD.encode() in every_byte(tmp_path)
    done = erase(tmp_path, MINE, dry_run=False)

    mine = sum(card == CARD for card in before[len(before)]["card_id"].to_pylist())
    assert done == counted == ErasedTable(2 * mine, 0, len(sizes))  # the rows of the merged file are in the others too
    assert CARD.encode() not in every_byte(tmp_path)
    assert sizes == {file: file.stat().st_size for file in tmp_path.rglob("*.parquet")}
    assert log == {file: file.read_bytes() for file in (tmp_path / "_delta_log").iterdir()}
    for version, found in versions(tmp_path):
        assert found.select(PLATFORM.names).equals(before[version].select(PLATFORM.names))
        assert of_others(found) == of_others(before[version])
        gone = [row for row in found.to_pylist() if row["card_id"] is None]
        assert all(value is None for row in gone for name, value in row.items() if name not in PLATFORM.names)
    files = [str(tmp_path / file.path) for file in held.files()]
    counts = f"select count(*), count(card_id) from read_parquet({files})"
    assert duckdb.connect().execute(counts).fetchall() == [(900, 900 - mine)]
    assert erase(tmp_path, MINE, dry_run=False) == ErasedTable()


def test_the_log_and_its_checkpoints_have_no_value_of_a_record(tmp_path: Path) -> None:
    held, rng = table(tmp_path), random.Random(1)
    held.append(events(rng, 200), {}, {0: 200})
    DeltaTable(tmp_path).create_checkpoint()
    log = every_byte(tmp_path / "_delta_log")
    assert list((tmp_path / "_delta_log").glob("*.checkpoint.parquet"))
    assert b"card_id" in log  # the schema is there
    assert b"card_4" not in log
    assert b"card_9" not in log


def test_a_row_of_another_entity_loses_the_word_alone(tmp_path: Path) -> None:
    rng = random.Random(1)
    about = {"type": "merchant", "id": "merchant_77"}
    longer = f"{CARD}0"
    found = pa.Table.from_pylist(
        [
            event(0, OTHER, rng, note=f"as {CARD}, and {longer}", others=[CARD, OTHER], labels={CARD: "x"}),
            event(1, longer, rng),
            event(2, CARD, rng),
        ],
        schema=EVENT,
    )
    left = erased(found, MINE)
    assert (left.removed, left.masked) == (1, 1)
    first, second, third = left.rows.to_pylist()
    assert first["note"] == f"as {ERASED}, and {longer}"
    assert (first["others"], first["labels"]) == ([ERASED, OTHER], [(ERASED, "x")])
    assert (first["card_id"], first["amount"]) == (OTHER, found["amount"][0].as_py())
    assert repr(second) == repr(found.to_pylist()[1])
    assert (third["offset"], third["card_id"], third["raw"]) == (2, None, None)
    alert = dict.fromkeys(ALERT.names) | {"partition": 0, "offset": 0, "reason": f"{CARD} and 40 more", "score": 0.5}
    alerts = pa.Table.from_pylist(
        [alert | {"entity": about}, alert | {"offset": 1, "entity": {"type": "card", "id": CARD}}], schema=ALERT
    )
    theirs, mine = erased(alerts, ErasureTarget(SUBJECT)).rows.to_pylist()
    assert (theirs["entity"], theirs["reason"], theirs["score"]) == (about, f"{ERASED} and 40 more", 0.5)
    assert (mine["offset"], mine["entity"], mine["reason"], mine["score"]) == (1, None, None, None)


def test_a_dead_letter_that_names_it_in_any_bytes_keeps_its_place_alone() -> None:
    avro = b"P" + CARD.encode() + b"P"  # the length of the text, and of the next one
    place = {"partition": 0, "timestamp": NOW, "ingested_at": NOW, "day": THE_DAY, "bucket": 0, "key": b"k"}
    found = pa.Table.from_pylist(
        [
            place | {"offset": 0, "value": avro, "headers": []},
            place | {"offset": 1, "value": b"x", "headers": [{"key": "reason", "value": f"of {CARD}".encode()}]},
            place | {"offset": 2, "value": OTHER.encode(), "headers": [{"key": "reason", "value": b"bad"}]},
        ],
        schema=raw_columns(),
    )
    left = erased(found, ErasureTarget(SUBJECT))
    assert (left.removed, left.masked) == (2, 0)
    assert left.rows["offset"].to_pylist() == [0, 1, 2]
    assert left.rows["value"].to_pylist() == [None, None, OTHER.encode()]
    assert left.rows["headers"].to_pylist() == [None, None, [{"key": "reason", "value": b"bad"}]]


def test_a_notification_is_the_subjects_by_the_alerts_of_its_case(tmp_path: Path) -> None:
    place = {"partition": 0, "timestamp": NOW, "ingested_at": NOW, "day": THE_DAY, "bucket": 0}
    alert = dict.fromkeys(ALERT.names) | place
    alerts = [
        alert | {"offset": 0, "alert_id": "a-1", "entity": {"type": "card", "id": CARD}},
        alert | {"offset": 1, "alert_id": "a-2", "entity": {"type": "card", "id": OTHER}, "reason": f"as {CARD}"},
    ]
    list(write(tmp_path, THE_DAY, 0, [pa.Table.from_pylist(alerts, schema=ALERT)], file_bytes=None))
    ids = frozenset(alerts_in(tmp_path, SUBJECT))
    assert ids == {"a-1"}
    columns = pa.schema([*PLATFORM, ("alert_ids", pa.list_(pa.string())), ("text", pa.string())])
    rows = [
        place | {"offset": 0, "alert_ids": ["a-0", "a-1"], "text": "charged twice"},
        place | {"offset": 1, "alert_ids": ["a-2"], "text": "charged twice"},
        place | {"offset": 2, "alert_ids": None, "text": None},
    ]
    left = erased(pa.Table.from_pylist(rows, schema=columns), ErasureTarget(SUBJECT, alerts=ids))
    assert (left.removed, left.masked) == (1, 0)
    assert left.rows["text"].to_pylist() == [None, "charged twice", None]
    assert left.rows["alert_ids"].to_pylist() == [None, ["a-2"], None]


def test_only_the_bucket_of_a_key_is_read(tmp_path: Path) -> None:
    rng = random.Random(1)
    for bucket in (0, 1):
        part = pa.Table.from_pylist([event(bucket, CARD, rng, bucket=bucket)], schema=EVENT)
        list(write(tmp_path, THE_DAY, bucket, [part], file_bytes=None))
    assert erase(tmp_path, MINE, 1, dry_run=False) == ErasedTable(1, 0, 1)
    assert erase(tmp_path, MINE, dry_run=False) == ErasedTable(1, 0, 1)


def test_a_large_file_keeps_its_groups_of_rows(tmp_path: Path) -> None:
    (held,) = write(tmp_path, THE_DAY, 0, [events(random.Random(3), ROW_GROUP + 100)], file_bytes=None)
    before = pq.ParquetFile(tmp_path / held.path)
    erase(tmp_path, MINE, dry_run=False)
    after = pq.ParquetFile(tmp_path / held.path)
    sizes = [[file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)] for file in (before, after)]
    assert sizes[0] == sizes[1]
    assert len(sizes[0]) == 2


def test_zeros_before_the_footer_are_read_by_nobody(tmp_path: Path) -> None:
    file = tmp_path / "one.parquet"
    pq.write_table(events(random.Random(1), 50), file)
    before = pq.read_table(file)
    size = file.stat().st_size
    assert padded(file, size + 1_000)
    assert file.stat().st_size == size + 1_000
    assert [repr(row) for row in pq.read_table(file).to_pylist()] == [repr(row) for row in before.to_pylist()]
    assert duckdb.connect().execute(f"select count(card_id), max(amount) from '{file}'").fetchall()[0][0] == 50
    assert not padded(file, size)


def test_a_file_that_becomes_longer_is_compressed_further(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (held,) = write(tmp_path, THE_DAY, 0, [events(random.Random(1), 500)], file_bytes=None)
    tried = list[int]()

    def longer_at_first(file: Path, size: int) -> bool:
        tried.append(file.stat().st_size)
        return len(tried) == 3 and padded(file, size)

    monkeypatch.setattr(erasure, "padded", longer_at_first)
    assert erase(tmp_path, MINE, dry_run=False).files == 1
    assert tried == sorted(tried, reverse=True)
    assert len(set(tried)) == 3
    assert pq.ParquetFile(tmp_path / held.path).metadata.num_rows == 500


def test_a_file_that_cannot_become_as_short_stays_and_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (held,) = write(tmp_path, THE_DAY, 0, [events(random.Random(1), 50)], file_bytes=None)
    content = (tmp_path / held.path).read_bytes()
    monkeypatch.setattr(erasure, "padded", lambda file, size: False)
    with pytest.raises(NotErased, match="longer than"):
        erase(tmp_path, MINE, dry_run=False)
    assert (tmp_path / held.path).read_bytes() == content
    assert [file.name for file in (tmp_path / held.path).parent.iterdir()] == [Path(held.path).name]


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    (held,) = write(tmp_path, THE_DAY, 0, [events(random.Random(1), 500)], file_bytes=None)
    content = (tmp_path / held.path).read_bytes()
    with files_of_at_most(len(content) // 2), pytest.raises(NotErased, match="make room"):
        erase(tmp_path, MINE, dry_run=False)
    assert [file.read_bytes() for file in (tmp_path / held.path).parent.iterdir()] == [content]


def test_what_a_killed_erasure_has_left_is_removed(tmp_path: Path) -> None:
    (held,) = write(tmp_path, THE_DAY, 0, [events(random.Random(1), 50)], file_bytes=None)
    left = tmp_path / f"{held.path}.erasing"
    left.write_bytes(b"PAR1")
    assert erase(tmp_path, MINE, dry_run=False).files == 1
    assert not left.exists()


def test_a_file_without_a_footer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (held,) = write(tmp_path, THE_DAY, 0, [events(random.Random(1), 50)], file_bytes=None)
    monkeypatch.setattr(erasure, "WRITING_SECONDS", 0.3)
    (tmp_path / held.path).write_bytes((tmp_path / held.path).read_bytes()[:-8])
    with pytest.raises(NotErased, match="no footer"):
        erase(tmp_path, MINE, dry_run=False)


def test_files_that_a_merge_makes_during_an_erasure_are_looked_at_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (held,) = write(tmp_path, THE_DAY, 0, [events(random.Random(1), 50)], file_bytes=None)
    copied = tmp_path / held.path.replace("part-", "part-merged-")
    replaced = erasure._replaced

    def merging(file: Path, *given: Any) -> Any:
        if not copied.exists():
            shutil.copy(file, copied)
        return replaced(file, *given)

    monkeypatch.setattr(erasure, "_replaced", merging)
    assert erase(tmp_path, MINE, dry_run=False).files == 2
    assert CARD.encode() not in every_byte(tmp_path)


def test_two_erasures_at_once_are_refused(tmp_path: Path) -> None:
    with erasure.erasing(tmp_path), pytest.raises(NotErased, match="another erasure"), erasure.erasing(tmp_path):
        raise AssertionError
    with erasure.erasing(tmp_path):
        pass


def test_a_replaced_file_is_another_one_for_a_merge(tmp_path: Path) -> None:
    held = table(tmp_path)
    held.append(events(random.Random(1), 50), {}, {0: 50})
    held.append(events(random.Random(2), 50, 50), {0: 50}, {0: 100})
    (small,) = to_merge(held.files(), NEXT_DAY)
    before = contents(tmp_path, small)
    assert contents(tmp_path, small) == before
    erase(tmp_path, MINE, dry_run=False)
    assert contents(tmp_path, small) != before
