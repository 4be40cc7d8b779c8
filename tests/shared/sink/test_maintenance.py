from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from lozenge.archive.archived_topics import archived_topics
from lozenge.archive.compaction import merged
from lozenge.archive.data_files import DataFile
from lozenge.archive.erased_rows import ErasureTarget
from lozenge.archive.erasure import ErasedTable, erase
from lozenge.contracts.topics import Topics
from lozenge.protocol.data_subject import DataSubject
from lozenge.sink import maintenance as sink_maintenance
from lozenge.sink.maintenance import EVERY, Maintenance, closed_before, oldest_kept
from lozenge.sink_declarations.archive_sink import ArchiveSink
from tests.archive_rows import DAY, NOW, positions, rows, table_in
from tests.streams import AUTH

CARD = "card_4f1c09e27ab35d68"


def upkeep(folder: Path, **declared: object) -> Maintenance:
    given = {"name": "archive", "kind": "archive", "title": "All", "owner": "platform"} | declared
    sink = ArchiveSink.model_validate(given)
    [topic] = archived_topics(sink, Topics(), [AUTH], {AUTH.events(Topics()): 4})
    return Maintenance(topic, table_in(folder), sink)


def all_steps(maintenance: Maintenance, now: datetime) -> int:
    done = 0
    while maintenance.step(now):
        done += 1
    return done


def test_a_day_is_over_an_hour_after_its_end_and_kept_for_as_long_as_declared() -> None:
    midnight = NOW.replace(hour=0)
    assert closed_before(midnight + timedelta(minutes=30)) == DAY
    assert closed_before(midnight + timedelta(hours=1)) == DAY + timedelta(days=1)
    assert oldest_kept(NOW, timedelta(days=1)) == DAY


def test_files_of_a_day_that_is_over_are_merged_step_by_step_and_then_nothing_is_left_to_do(tmp_path: Path) -> None:
    writer, maintenance = table_in(tmp_path), upkeep(tmp_path)
    writer.append(rows(0, range(10)), {}, {0: 10})
    writer.append(rows(0, range(10, 20)), {0: 10}, {0: 20})
    assert maintenance.step(NOW)
    assert len(table_in(tmp_path).files()) == 3
    writer.append(rows(0, range(20, 30)), {0: 20}, {0: 30})
    all_steps(maintenance, NOW)
    assert positions(writer) == [(0, offset) for offset in range(30)]
    assert not maintenance.step(NOW)
    all_steps(maintenance, NOW + EVERY)
    assert len(table_in(tmp_path).files()) == 2


def test_days_beyond_the_retention_are_removed(tmp_path: Path) -> None:
    writer, maintenance = table_in(tmp_path), upkeep(tmp_path, retention={"events": "1d"})
    writer.append(rows(0, range(10), day=DAY - timedelta(days=1)), {}, {0: 10})
    writer.append(rows(0, range(10, 20)), {0: 10}, {0: 20})
    all_steps(maintenance, NOW)
    assert positions(writer) == [(0, offset) for offset in range(10, 20)]


def test_a_merge_is_given_up_if_an_erasure_has_replaced_one_of_its_files_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, maintenance = table_in(tmp_path), upkeep(tmp_path)
    writer.append(rows(0, [0, 2]), {}, {0: 3})
    writer.append(rows(0, [4, 6], card_id=CARD), {0: 3}, {0: 7})
    names = {file.path for file in writer.files()}

    def merged_slowly(folder: Path, *given: Any) -> list[DataFile]:
        made = merged(folder, *given)
        monkeypatch.setattr(sink_maintenance, "merged", merged)
        assert erase(folder, ErasureTarget(DataSubject("card", CARD), "card_id"), dry_run=False) == ErasedTable(4, 0, 2)
        return made

    monkeypatch.setattr(sink_maintenance, "merged", merged_slowly)
    assert maintenance.step(NOW)
    assert {file.path for file in table_in(tmp_path).files()} == names
    assert {str(file.relative_to(tmp_path)) for file in tmp_path.glob("*/*/*.parquet")} == names
    all_steps(maintenance, NOW + EVERY)
    (whole,) = table_in(tmp_path).files()
    held = pq.ParquetFile(tmp_path / whole.path).read()
    assert (held["offset"].to_pylist(), held["card_id"].to_pylist()) == ([0, 2, 4, 6], ["card-0", "card-2", None, None])
