"""Tables of the platform on a broker: a good version as a whole, or the last good one."""

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from deltalake import write_deltalake
from sqlalchemy import create_engine, text

from lozenge.contracts.topics import platform_table
from lozenge.detector.tables.declared_table import Table
from lozenge.errors import Fenced, LozengeError
from lozenge.job.query.topic_versions import FollowedTopic, recorded_topics
from lozenge.kafka.settings import KafkaSettings
from lozenge.platform_tables.state import TableState
from lozenge.streams.project import STREAMS_VARIABLE
from lozenge_deploy.cli.sink.wanted import deployed_now, wanted_apps
from lozenge_upstream.tables.loader import TableLoader
from tests import postgres
from tests.deploy.command import invoke
from tests.integration.harness import wait_for
from tests.tables import DATABASE, Row, in_sqlite, limits, table_folder

COLUMNS = "country string, most decimal(18,4)"
MANY: list[Row] = [(f"C{n:02}", n, None) for n in range(30)]
Loading = Callable[..., TableLoader]


@pytest.fixture
def name() -> str:
    return f"limits_{uuid.uuid4().hex[:8]}"


@pytest.fixture
def loading(kafka: KafkaSettings, name: str) -> Loading:
    """Begins a loader of a table."""

    def begin(**declared: Any) -> TableLoader:
        loader = TableLoader(limits(name, **declared), kafka)
        loader.begin()
        return loader

    return begin


@pytest.fixture
def followed(kafka: KafkaSettings, name: str, tmp_path: Path) -> Iterator[FollowedTopic]:
    """The table as a job follows it, with two of its three columns."""
    found = FollowedTopic(kafka, Table(table=name, columns=COLUMNS), tmp_path / "followed")
    yield found
    found.close()


def values(table: Any) -> dict[str, Decimal]:
    """What a query reads."""
    assert table.in_force is not None
    rows = pq.read_table(table.path(table.in_force.digest)).to_pylist()
    assert len(rows) == table.in_force.entries
    return {row["country"]: row["most"] for row in rows}


def become(table: FollowedTopic, expected: dict[str, int]) -> str:
    def there() -> bool:
        table.poll()
        return table.in_force is not None and values(table) == expected

    wait_for(there, f"the rows {expected}")
    return table.in_force.digest if table.in_force else ""


def test_rows_of_postgresql_are_followed_and_each_version_can_be_read_again(
    kafka: KafkaSettings, name: str, loading: Loading, followed: FollowedTopic, tmp_path: Path
) -> None:
    with postgres.server(tmp_path / "postgres") as server:
        url = postgres.database(server, "risk")
        engine = create_engine(url)

        def execute(*statements: str) -> None:
            with engine.begin() as connection:
                for statement in statements:
                    connection.execute(text(statement))

        execute("create table limits (country text, most numeric(18,4), since timestamptz)")
        execute("insert into limits values ('DE', 100, now()), ('FR', 200.5, null)")
        loader = loading(source=url)
        assert str(loader.look().change) == "2 added, 0 changed, 0 removed"
        first = become(followed, {"DE": 100, "FR": Decimal("200.5")})  # type: ignore[dict-item]
        assert not loader.look().change
        execute("update limits set most = 150 where country = 'DE'", "delete from limits where country = 'FR'")
        execute("insert into limits values ('IT', 300, null)")
        assert str(loader.look().change) == "1 added, 1 changed, 1 removed"
        second = become(followed, {"DE": 150, "IT": 300})
        again = loading(source=url)
        assert not again.look().change, "a loader that starts again finds what was loaded"
        writing = loading(source=url, query="insert into limits values ('ES', 1, null) returning *")
        assert writing.look().state is TableState.UNREACHABLE
        execute("alter table limits drop column most")
        assert again.look().problems[0].count("does not exist") == 1
        engine.dispose()
    away = again.look()
    assert away.state is TableState.UNREACHABLE
    assert become(followed, {"DE": 150, "IT": 300}) == second
    table = Table(table=name, columns=COLUMNS)
    for version, expected in ((first, {"DE": 100, "FR": Decimal("200.5")}), (second, {"DE": 150, "IT": 300})):
        recorded = recorded_topics(kafka, {f"table {name}": version})(table, tmp_path / version)
        recorded.poll()
        assert (recorded.refused, values(recorded)) == ((), expected)


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (MANY[:10], "it has 10 rows, and the version before has 30 (shrinks_to = 0.5)"),
        ([], "it has no rows"),
        ([*MANY[1:], ("C00", "much", None)], "row 30 (country C00): most is 'much' (str), which is no decimal(18,4)"),
        ([*MANY, MANY[0]], "row 31 (country C00): an earlier row has the same key"),
    ],
)
def test_a_bad_version_writes_nothing_and_the_next_good_one_is_taken(
    loading: Loading, followed: FollowedTopic, tmp_path: Path, rows: list[Row], why: str
) -> None:
    file = tmp_path / "limits.db"
    good = {str(row[0]): int(str(row[1])) for row in MANY}
    loader = loading(source=in_sqlite(file, MANY))
    loader.look()
    version = become(followed, good)
    in_sqlite(file, rows)
    found = loader.look()
    assert (found.state, found.problems[0][: len(why)]) == (TableState.REFUSED, why)
    assert become(followed, good) == version
    in_sqlite(file, [*MANY, ("new", 1, None)])
    assert loader.look().state is TableState.GOOD
    assert become(followed, {**good, "new": 1}) != version


def test_a_delta_table_is_read_once_for_each_of_its_versions(
    loading: Loading, followed: FollowedTopic, tmp_path: Path
) -> None:
    place = str(tmp_path / "lake")
    rows = {"country": ["DE", "FR"], "most": [1, 2], "since": pa.array([None, 5], pa.timestamp("us", "UTC"))}
    write_deltalake(place, pa.table(rows))
    loader = loading(path=place)
    assert loader.look().rows == 2
    become(followed, {"DE": 1, "FR": 2})
    write_deltalake(place, pa.table(rows | {"most": [1, 3]}), mode="overwrite")
    assert [len(loader.look().change.changed) for _ in range(2)] == [1, 0]
    become(followed, {"DE": 1, "FR": 3})


def test_a_second_loader_fences_the_first(loading: Loading, followed: FollowedTopic, tmp_path: Path) -> None:
    file = tmp_path / "limits.db"
    first = loading(source=in_sqlite(file, [("DE", 1, None)]))
    first.look()
    second = loading(source=f"sqlite:///{file}")
    in_sqlite(file, [("DE", 2, None)])
    with pytest.raises(Fenced):
        first.look()
    assert str(second.look().change) == "0 added, 1 changed, 0 removed"
    become(followed, {"DE": 2})


def test_a_loader_that_is_killed_while_it_writes_leaves_the_last_good_version(
    kafka: KafkaSettings, name: str, loading: Loading, followed: FollowedTopic, tmp_path: Path
) -> None:
    source = in_sqlite(tmp_path / "limits.db", [("DE", 1, None), ("FR", 2, None)])
    loading(source=source).look()
    version = become(followed, {"DE": 1, "FR": 2})
    killed = Producer(kafka.client(transactional_id=f"lozenge-table-{name}"))
    killed.init_transactions(30)
    killed.begin_transaction()
    killed.produce(platform_table(kafka.topics, name).name, None, b'["DE"]', 0)
    killed.flush(30)
    followed.poll()
    assert followed.in_force is not None
    assert followed.in_force.digest == version
    assert not loading(source=source).look().change
    assert become(followed, {"DE": 1, "FR": 2}) == version


def test_a_table_without_a_column_that_is_in_force_is_refused_by_its_readers_alone(
    kafka: KafkaSettings, name: str, loading: Loading, followed: FollowedTopic, tmp_path: Path
) -> None:
    source = in_sqlite(tmp_path / "limits.db", [("DE", 1, None)])
    loading(source=source).look()
    version = become(followed, {"DE": 1})
    loading(source=source, columns="country string, since timestamp").look()
    restarted = FollowedTopic(kafka, Table(table=name, columns=COLUMNS), tmp_path / "followed")

    def refused() -> bool:
        followed.poll()
        return bool(followed.refused)

    wait_for(refused, "the refusal")
    restarted.poll()
    for table in (followed, restarted):
        assert table.refused == ("it has no column most; its columns are country, since",)
        assert table.in_force is not None
        assert table.in_force.digest == version
    restarted.close()


def test_the_commands_show_what_a_running_loader_has_found(kafka: KafkaSettings, name: str, tmp_path: Path) -> None:
    streams = tmp_path / "upstream" / "streams"
    streams.mkdir(parents=True)
    variables = {**kafka.variables, STREAMS_VARIABLE: str(streams)}
    file = tmp_path / "limits.db"
    source = in_sqlite(file, [("DE", 1, None), ("FR", 2, None)])
    table_folder(tmp_path, name, DATABASE.format(source=source) + 'every = "1s"\n')

    def called(*arguments: str) -> Any:
        run = invoke("table", *arguments, "-o", "json", cwd=tmp_path, **variables)
        if run.returncode:
            return run.returncode, run.stderr
        answer = json.loads(run.stdout)
        if isinstance(answer, list):
            return next(row for row in answer if row.get("table", name) == name)
        return answer

    assert called("check", name) == {
        "table": name,
        "state": "good",
        "rows": 2,
        "added": 2,
        "changed": 0,
        "removed": 0,
        "problems": [],
    }
    assert called("deploy", name)["release"] == 1
    environment = {**os.environ, **kafka.variables}
    command = [sys.executable, "-m", "lozenge_upstream.tables", name]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as loader:
        try:
            wait_for(lambda: called("show", name)["state"] == "good", "the first version")
            shown = called("show", name)
            assert (shown["rows"], shown["first"][0]["country"], shown["key"]) == (2, "DE", ["country"])
            in_sqlite(file, [])
            wait_for(lambda: called("ls")["state"] == "refused", "the alarm")
            code, refusal = called("check", name)
            assert (code, "it has no rows" in refusal) == (1, True)
            status = invoke("status", f"table-{name}", "-o", "json", cwd=tmp_path, **variables)
            assert "the last good version stays" in json.loads(status.stdout)[0]["reason"]
        finally:
            loader.send_signal(signal.SIGTERM)
            _, said = loader.communicate(timeout=60)
    assert loader.returncode == 0
    assert b"the source is refused, and the last good version stays: it has no rows" in said
    assert called("ls")["rows"] == 2


def test_the_source_of_a_table_that_up_deploys_is_read_once_first(
    kafka: KafkaSettings, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "upstream" / "streams").mkdir(parents=True)
    monkeypatch.setenv(STREAMS_VARIABLE, str(tmp_path / "upstream" / "streams"))
    file = tmp_path / "limits.db"
    table_folder(tmp_path, name, DATABASE.format(source=in_sqlite(file, [])))
    wanted = wanted_apps([], [name])
    with pytest.raises(LozengeError, match="it has no rows"):
        deployed_now(kafka, wanted)
    in_sqlite(file, [("DE", 1, None)])
    assert deployed_now(kafka, wanted) == [f"table-{name}: r1 is deployed"]
    in_sqlite(file, [])
    assert deployed_now(kafka, wanted) == [f"table-{name}: r1 is deployed already"]
