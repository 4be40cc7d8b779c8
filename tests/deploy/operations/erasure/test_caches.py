"""An erasure looks at each cache that may have entries."""

from typing import Any

from lozenge.protocol.app_requests import AppState
from lozenge.sink_declarations.project import Sink, sink_of
from lozenge_deploy.operations.declarations.sinks import deployment_of
from lozenge_deploy.operations.erasure.caches import known_sinks
from tests.deploy.operations.declarations.states import after


def cache(name: str, **changed: Any) -> Sink:
    declared = {"kind": "cache", "url": "redis://one", "stream": "auth", **changed}
    return sink_of({"name": name, "title": "t", "owner": "o", **declared})


def released(sink: Sink) -> AppState:
    return after(AppState(sink.app), deployment_of(AppState(sink.app), sink, ""))


def test_a_cache_is_known_by_its_last_release_also_a_retired_one_and_by_its_folder_without_one() -> None:
    deployed, retired = released(cache("one", rows=5)), released(cache("two"))
    states = {each.name: each for each in (deployed, AppState("sink-two", None, retired.releases))}
    found = known_sinks(states, [cache("one"), cache("three")])
    assert found == [cache("one", rows=5), cache("three"), cache("two")]
