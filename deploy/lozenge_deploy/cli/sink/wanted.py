"""Sinks and tables that `lozenge up` names: each is deployed unless it is already."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lozenge.errors import UsageError
from lozenge.process.env_settings import named_variables
from lozenge_deploy.cli.printing.output import show_warnings

if TYPE_CHECKING:
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.protocol.app_requests import AppRow, AppState
    from lozenge.sink_declarations.project import Sink

REASON = "lozenge up"


class Wanted(NamedTuple):
    """A sink or a table whose declaration is right, and what its first deployment requests.

    `decide` raises if that cannot run on the platform.
    """

    app: str
    declaration: Mapping[str, Any]
    decide: "Callable[[KafkaSettings, AppState], list[AppRow]]"


def wanted_apps(sinks: Sequence[str] | None, tables: Sequence[str] | None) -> list[Wanted]:
    """Those of these names, each once.

    Raises UsageError for a name that there is not; ConfigError for a declaration that is wrong, or that names a stream,
    key or field that there is not, or a variable that is not set.
    """
    return [
        *(_sink(name) for name in sorted({*(sinks or ())})),
        *(_table(name) for name in sorted({*(tables or ())})),
    ]


def require_variables(wanted: Sequence[Wanted], environment: Mapping[str, str] | None) -> None:
    """Raises UsageError if a declaration names variables that the platform lacks in its `environment`, if known."""
    if environment is None:
        return
    for each in wanted:
        named = named_variables(json.dumps(dict(each.declaration), default=str))
        if lacking := [name for name in named if name not in environment]:
            raise UsageError(
                f"deploying {each.app}: the platform was started without {', '.join(lacking)}",
                hint="`lozenge down`, set what is missing, and `lozenge up` again: its processes have the variables of "
                "its start",
            )


def deployed_now(kafka: "KafkaSettings", wanted: Sequence[Wanted]) -> list[str]:
    """A sentence for each: it is deployed now, or was before, as something else or as its folder says.

    The source of a table that is not deployed yet is read once first. Raises as `deployment_of` and `require_good` do,
    and BrokerUnavailable.
    """
    from lozenge.protocol.app_requests import AppRequest
    from lozenge_deploy.operations.declarations.apps import requests_of_apps

    requests, sentences = requests_of_apps(kafka), list[str]()
    for each in wanted:

        def once(state: "AppState", each: Wanted = each) -> "list[AppRow]":
            return each.decide(kafka, state) if state.request is None else []

        action = f"{each.app.partition('-')[0]} deploy"
        made = requests.make(each.app, once, action=action, detail={"reason": REASON})
        new = next((f"r{row.release}" for row in made if isinstance(row, AppRequest)), None)
        sentences.append(f"{each.app}: {new} is deployed" if new else _as_it_is(each, requests.state_of(each.app)))
    return sentences


def _as_it_is(wanted: Wanted, state: "AppState") -> str:
    """What is deployed of an app, whose folder may differ."""
    from lozenge_deploy.operations.declarations.apps import words_of

    request, words = state.request, words_of(wanted.app)
    if request is None:
        return f"{wanted.app}: it was retired just now"
    said = f"{wanted.app}: r{request.release} is deployed already"
    if state.release is not None and state.release.declaration != wanted.declaration:
        said += f", and its folder differs: `{words.commands} deploy {words.name}` releases that"
    return f"{said}, and is paused: `lozenge resume {wanted.app}` starts it" if request.paused else said


def _sink(name: str) -> Wanted:
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.streams.project import Streams
    from lozenge_deploy.operations.declarations.sinks import checked_sink, deployment_of

    found = checked_sink(name, Streams.load(), KafkaSettings.load())
    show_warnings(found.warnings)
    sink: Sink = found.sink
    return Wanted(sink.app, sink.model_dump(mode="json"), lambda _, state: deployment_of(state, sink, REASON))


def _table(name: str) -> Wanted:
    from lozenge.platform_tables.project import table_named
    from lozenge.streams.project import project_folder
    from lozenge_deploy.operations.declarations.tables import deployment_of, look_of, require_good

    table, doing = table_named(project_folder(), name), f"deploying the table {name}"
    table.address()

    def decide(kafka: "KafkaSettings", state: "AppState") -> "list[AppRow]":
        require_good(look_of(table, doing, kafka), doing)
        return deployment_of(state, table, {}, REASON)

    return Wanted(table.app, table.model_dump(mode="json"), decide)
