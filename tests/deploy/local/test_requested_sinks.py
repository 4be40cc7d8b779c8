"""What is wrong with a sink is said when it is requested."""

from pathlib import Path

import pytest

from lozenge.errors import ConfigError, UsageError
from lozenge.streams.project import Streams
from lozenge_deploy.local.requested_sinks import RequestedSinks, requested_sinks
from tests.sinks import sink_folder
from tests.streams import with_json_alone

GOOD = 'kind = "cache"\ntitle = "Last"\nowner = "tests"\nurl = "redis://127.0.0.1:6379/0"\n'


@pytest.fixture
def streams(tmp_path: Path) -> Streams:
    """Those of a project with one detector."""
    with_json_alone(tmp_path / "upstream")
    detector = tmp_path / "detectors" / "large_amount"
    detector.mkdir(parents=True)
    (detector / "pyproject.toml").touch()
    return Streams.of(tmp_path / "upstream" / "streams")


def asked(streams: Streams, reads: str) -> RequestedSinks:
    sink_folder(streams.folder.parents[1], "last", GOOD + reads)
    return requested_sinks(["last", "last"], streams)


@pytest.mark.parametrize("reads", ['stream = "auth"', 'alerts_of = "large_amount"', 'state_of = "large_amount"'])
def test_what_reads_something_that_there_is_needs_no_warning(streams: Streams, reads: str) -> None:
    assert asked(streams, reads) == RequestedSinks(["last"], [])


def test_a_detector_that_the_project_has_not_is_named_with_those_near_to_it(streams: Streams) -> None:
    [warning] = asked(streams, 'alerts_of = "large_amout"').warnings
    assert warning.startswith("sink-last waits for the alerts of large_amout, and this project has no detector")
    assert warning.endswith("; near to it: large_amount")


@pytest.mark.parametrize(
    ("reads", "problem"),
    [
        ('stream = "auht"', "there is no stream auht; there are auth, login"),
        ('stream = "auth"\nkey = "mechant"', "auth has no key mechant"),
        ('stream = "auth"\nfields = ["amout"]', "there is no field amout"),
    ],
)
def test_a_stream_key_or_field_that_there_is_not_is_refused(streams: Streams, reads: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        asked(streams, reads)
    assert problem in str(refused.value)


def test_a_sink_that_there_is_not_is_answered_with_those_there_are(streams: Streams) -> None:
    with pytest.raises(UsageError) as refused:
        requested_sinks(["last"], streams)
    assert "this project has no sink" in refused.value.hint
    sink_folder(streams.folder.parents[1], "first", GOOD + 'stream = "auth"')
    with pytest.raises(UsageError) as refused:
        requested_sinks(["last"], streams)
    assert "name one of first" in refused.value.hint
