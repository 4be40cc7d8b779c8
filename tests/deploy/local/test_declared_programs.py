"""The processes of what is deployed."""

from lozenge.protocol.app_requests import APPS, AppRequest, AppState
from lozenge.protocol.source_requests import SOURCES, SourceRequest
from lozenge_deploy.local.declared_programs import programs_of, programs_of_app, programs_of_source


def state(request: AppRequest) -> AppState:
    return APPS.state_of(request.owner, {request.owner: request})


def test_a_cache_has_its_instances_and_each_knows_its_sink_by_name() -> None:
    found = programs_of_app(state(AppRequest("sink-last", 3, instances=2)))
    assert {name: each.module for name, each in found.items()} == {
        "sink-last": ("lozenge.sink", "last"),
        "sink-last-2": ("lozenge.sink", "last"),
    }


def test_another_release_is_another_program_so_that_one_that_failed_is_started_again() -> None:
    one, two = (programs_of_app(state(AppRequest("table-limits", number))) for number in (1, 2))
    assert (one["table-limits"].module, one != two) == (("lozenge_upstream.tables", "limits"), True)


def test_a_paused_sink_and_what_is_retired_have_no_process_and_a_paused_source_keeps_its_files() -> None:
    assert programs_of_app(state(AppRequest("sink-last", 3, paused=True))) == {}
    assert programs_of_app(AppState("sink-last")) == {}
    request = SourceRequest("night", 1, paused=True)
    assert [*programs_of_source(SOURCES.state_of("night", {"night": request}))] == ["files-night"]


def test_each_kind_has_the_processes_of_its_kind() -> None:
    source = SOURCES.state_of("night", {"night": SourceRequest("night", 1)})
    assert [*programs_of([source, state(AppRequest("sink-last", 1)), AppState("table-limits")])] == [
        "files-night",
        "sink-last",
    ]
