"""What is wrong with a sink is said before it is released, and what a change of one would do."""

from pathlib import Path
from typing import Any

import pytest

from lozenge.errors import ConfigError, UsageError
from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.app_requests import AppState
from lozenge.sink_declarations.project import Sink, sink_of
from lozenge.streams.project import Streams
from lozenge_deploy.operations.declarations.sinks import (
    CheckedSink,
    checked_sink,
    deployment_of,
    effects,
    last_of,
    rollback_of,
    sink_row,
)
from tests.deploy.operations.declarations.states import after, request_of
from tests.sinks import sink_folder
from tests.streams import with_json_alone

KAFKA = KafkaSettings(bootstrap="127.0.0.1:1")
GOOD = 'kind = "cache"\ntitle = "Last"\nowner = "tests"\nurl = "redis://127.0.0.1:6379/0"\n'


@pytest.fixture
def streams(tmp_path: Path) -> Streams:
    """Those of a project with one detector."""
    with_json_alone(tmp_path / "upstream")
    detector = tmp_path / "detectors" / "large_amount"
    detector.mkdir(parents=True)
    (detector / "pyproject.toml").touch()
    return Streams.of(tmp_path / "upstream" / "streams")


def asked(streams: Streams, reads: str, declared: str = GOOD) -> CheckedSink:
    sink_folder(streams.folder.parents[1], "last", declared + reads)
    return checked_sink("last", streams, KAFKA)


def cache(**changed: Any) -> Sink:
    declared = {"kind": "cache", "url": "redis://one", "stream": "auth", **changed}
    return sink_of({"name": "last", "title": "t", "owner": "o", **declared})


def archive(**changed: Any) -> Sink:
    return sink_of({"name": "last", "title": "t", "owner": "o", "kind": "archive", **changed})


# declarations


@pytest.mark.parametrize("reads", ['stream = "auth"', 'alerts_of = "large_amount"', 'state_of = "large_amount"'])
def test_what_reads_something_that_there_is_needs_no_warning(streams: Streams, reads: str) -> None:
    assert asked(streams, reads).warnings == []


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


def test_all_problems_are_named_at_once(streams: Streams) -> None:
    with pytest.raises(ConfigError) as refused:
        asked(streams, 'stream = "auth"\nfields = ["amout"]', GOOD.replace("127.0.0.1", "${NEVER_SET}"))
    assert [problem.split(";")[0] for problem in refused.value.problems] == [
        "NEVER_SET is not set",
        "fields: there is no field amout",
    ]


def test_an_archive_of_a_stream_that_there_is_not_is_refused(streams: Streams) -> None:
    with pytest.raises(ConfigError, match="there is no stream auht"):
        asked(streams, 'streams = ["auht"]', 'kind = "archive"\ntitle = "t"\nowner = "o"\n')


@pytest.mark.parametrize("url", ["redis://:secret@host/0", "postgresql://ann:secret@host/x", "redis://h?password=s"])
def test_a_password_is_refused_so_none_is_in_a_topic(streams: Streams, url: str) -> None:
    with pytest.raises(ConfigError, match="it has a password") as refused:
        asked(streams, 'stream = "auth"', GOOD.replace("redis://127.0.0.1:6379/0", url))
    assert "secret" not in str(refused.value)


def test_a_sink_that_there_is_not_is_answered_with_those_there_are(streams: Streams) -> None:
    with pytest.raises(UsageError) as refused:
        checked_sink("last", streams, KAFKA)
    assert "this project has no sink" in refused.value.hint
    sink_folder(streams.folder.parents[1], "first", GOOD + 'stream = "auth"')
    with pytest.raises(UsageError) as refused:
        checked_sink("last", streams, KAFKA)
    assert "name one of first" in refused.value.hint


# changes


@pytest.mark.parametrize("retired", [False, True])
@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (cache(stream="login"), "it has events of auth, and would have events of login"),
        (cache(stream="", alerts_of="spotter"), "would have alerts of spotter"),
        (archive(), "of the kind cache, and would be of the kind archive"),
    ],
)
def test_a_cache_becomes_no_other_cache_also_once_it_is_retired(changed: Sink, reason: str, retired: bool) -> None:
    state = after(AppState("sink-last"), deployment_of(AppState("sink-last"), cache(), ""))
    if retired:
        state = AppState(state.name, None, state.releases)
    with pytest.raises(UsageError, match=reason) as refused:
        deployment_of(state, changed, "")
    assert "in a folder of its own" in refused.value.hint


def test_how_a_cache_is_written_may_change_and_the_variables_of_its_address_stay_names() -> None:
    state = after(AppState("sink-last"), deployment_of(AppState("sink-last"), cache(url="${URL}"), ""))
    state = after(state, deployment_of(state, cache(url="${URL}", rows=5), ""))
    assert (state.releases[2].declaration["url"], last_of(state)) == ("${URL}", cache(url="${URL}", rows=5))
    assert sink_row("sink-last", state)["release"] == "r2"


@pytest.mark.parametrize(
    ("before", "changed", "said"),
    [
        (cache(), cache(rows=5), []),
        (cache(), cache(url="redis://two"), ["another server is filled from the topic"]),
        (cache(), cache(fields=["amount"], ttl="1d"), ["fields and ttl: an entry changes with the next record"]),
        (archive(), archive(commit_every="2s"), []),
        (archive(), archive(buckets=8), ["buckets: tables that exist keep 16"]),
        (archive(), archive(records=["events"]), ["alerts, notifications, feedback, dead-letters: their tables stay"]),
        (archive(), archive(streams=["auth"]), ["events of other streams than auth"]),
        (archive(retention={"events": "9d"}), archive(retention={"events": "2d"}), ["retention: rows of events older"]),
        (archive(retention={"events": "9d"}), archive(), []),
    ],
)
def test_what_a_change_does_not_do_or_does_for_good_is_said(before: Sink, changed: Sink, said: list[str]) -> None:
    found = list(effects(before, changed))
    assert len(found) == len(said)
    assert all(each.startswith(begin) for each, begin in zip(found, said, strict=True)), found


def test_a_release_that_cannot_run_any_more_is_not_rolled_back_to(streams: Streams) -> None:
    state = after(AppState("sink-last"), deployment_of(AppState("sink-last"), cache(fields=["gone"]), ""))
    state = after(state, deployment_of(state, cache(), ""))
    with pytest.raises(ConfigError, match="there is no field gone"):
        rollback_of(state, "", streams, KAFKA)
    state.releases[1].declaration["unknown"] = 1
    with pytest.raises(ConfigError, match="cannot run it"):
        rollback_of(state, "", streams, KAFKA)
    assert request_of(rollback_of(state, "r2", streams, KAFKA)).release == 2
