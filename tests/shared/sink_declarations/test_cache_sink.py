"""A cache names one input and one server; its password is in no file."""

from datetime import timedelta
from pathlib import Path

import pytest

from lozenge.errors import ConfigError
from lozenge.sink_declarations.cache_sink import CacheSink
from lozenge.sink_declarations.project import read_sink
from tests.sinks import sink_folder

GOOD = 'kind = "cache"\ntitle = "Last"\nowner = "tests"\nurl = "redis://127.0.0.1:6379/0"\n'


def declared(folder: Path, text: str) -> CacheSink:
    found = read_sink(sink_folder(folder, "last", text))
    assert isinstance(found, CacheSink)
    return found


def test_what_is_not_declared_has_a_default(tmp_path: Path) -> None:
    sink = declared(tmp_path, GOOD + 'stream = "auth"\n')
    assert (sink.app, sink.key, sink.ttl, sink.tombstone_ttl) == ("sink-last", "", None, timedelta(days=1))
    assert sink.reads == "events of auth"


def test_everything_can_be_declared(tmp_path: Path) -> None:
    more = 'stream = "auth"\nkey = "merchant"\nfields = ["amount"]\nttl = "30d"\ntombstone_ttl = "1h"\nrows = 10\n'
    sink = declared(tmp_path, GOOD + more)
    assert (sink.ttl, sink.fields, sink.rows) == (timedelta(days=30), ("amount",), 10)
    assert sink.reads == "events of auth by merchant"


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        pytest.param("", "name one of stream, alerts_of and state_of", id="no input"),
        pytest.param('stream = "a"\nstate_of = "b"', "line 6: state_of: name one of", id="two inputs"),
        pytest.param('alerts_of = "a"\nkey = "b"', "`key` is a key of a stream", id="a key of no stream"),
        pytest.param('stream = "a"\nttl = "0s"', "line 6: ttl", id="no time"),
        pytest.param('stream = "a"\nrows = 0\nfile = 1', "line 7: file", id="an unknown word"),
    ],
)
def test_what_does_not_fit_is_named_with_its_line(tmp_path: Path, more: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        declared(tmp_path, GOOD + more)
    assert problem in "\n".join(refused.value.problems)


def test_a_server_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        declared(tmp_path, GOOD.replace("redis://", "mysql://") + 'stream = "a"\n')
    assert "line 4: url" in refused.value.problems[0]


def test_variables_of_the_url_come_from_the_environment(tmp_path: Path) -> None:
    sink = declared(tmp_path, GOOD.replace("127.0.0.1", "${USER_OF_IT}:${SECRET_OF_IT}@h") + 'stream = "a"\n')
    assert sink.address({"USER_OF_IT": "u", "SECRET_OF_IT": "p"}) == "redis://u:p@h:6379/0"
    with pytest.raises(ConfigError) as refused:
        sink.address({"USER_OF_IT": "u"})
    assert list(refused.value.problems) == ["SECRET_OF_IT is not set"]


def test_a_whole_url_may_be_a_variable_and_names_a_known_kind_of_server(tmp_path: Path) -> None:
    sink = declared(tmp_path, GOOD.replace("redis://127.0.0.1:6379/0", "${WHERE}") + 'stream = "a"\n')
    assert sink.address({"WHERE": "postgresql://h/caches"}) == "postgresql://h/caches"
    with pytest.raises(ConfigError, match="no server of a cache"):
        sink.address({"WHERE": "mysql://h"})
