from datetime import timedelta
from pathlib import Path

import pytest

from lozenge.errors import ConfigError, UsageError
from lozenge.sink_declarations.archive_sink import ArchiveSink, Records
from lozenge.sink_declarations.project import read_sink, sink_named, sinks_in
from tests.sinks import sink_folder

GOOD = 'kind = "archive"\ntitle = "All topics"\nowner = "platform"\n'
PROJECT = Path(__file__).parents[3]


def declared(folder: Path, text: str) -> ArchiveSink:
    found = read_sink(sink_folder(folder, "cold", text))
    assert isinstance(found, ArchiveSink)
    return found


def test_what_is_not_declared_has_a_default(tmp_path: Path) -> None:
    sink = declared(tmp_path, GOOD)
    assert (sink.name, sink.app, sink.commit_every, sink.commit_mb) == ("cold", "sink-cold", timedelta(minutes=1), 64)
    assert sink.records == tuple(Records)
    assert list(sinks_in(tmp_path)) == [sink_named(tmp_path, "cold")] == [sink]


def test_everything_can_be_declared(tmp_path: Path) -> None:
    more = 'records = ["events"]\nstreams = ["auth"]\nbuckets = 4\ncommit_every = "5s"\n[retention]\nevents = "400d"\n'
    sink = declared(tmp_path, GOOD + more)
    assert (sink.records, sink.buckets, sink.retention) == ((Records.EVENTS,), 4, {Records.EVENTS: timedelta(days=400)})


def test_every_problem_is_named_at_once_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        declared(
            tmp_path,
            'kind = "archive"\ntitle = " "\nowner = "x"\nbuckets = 0\nfile = 1\nname = "y"\n'
            '[retention]\nevents = "1h"\n',
        )
    found = "\n".join(refused.value.problems)
    for place in (
        "line 2: title",
        "line 4: buckets",
        "line 5: file",
        "name in the file",
        "line 8: retention.events",
    ):
        assert place in found


@pytest.mark.parametrize(("text", "problem"), [("kind = ", "not TOML"), ("", "kind"), ('kind = "hot"', "line 1: kind")])
def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        declared(tmp_path, text)


def test_a_folder_without_a_declaration_and_an_unknown_sink_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_sink(tmp_path)
    declared(tmp_path, GOOD)
    with pytest.raises(UsageError, match="name one of cold"):
        sink_named(tmp_path, "warm")


def test_the_archive_of_this_project_takes_every_kind_of_record() -> None:
    found = sink_named(PROJECT, "archive")
    assert isinstance(found, ArchiveSink)
    assert found.records == tuple(Records)
