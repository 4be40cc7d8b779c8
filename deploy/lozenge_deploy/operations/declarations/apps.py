"""What a command requests of a sink or a table of the platform, given what is deployed. Pure but for the clock."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from lozenge.apps import is_table
from lozenge.errors import ConfigError, UsageError
from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.app_requests import APPS, AppRelease, AppRequest, AppRow, AppState
from lozenge.protocol.declared_releases import name_of
from lozenge.validation import problem_of
from lozenge_deploy.operations.declarations import releases
from lozenge_deploy.operations.declarations.releases import Words
from lozenge_deploy.operations.declarations.requests import Requests

T = TypeVar("T")
AppRequests = Requests[AppRelease, AppRequest]


def requests_of_apps(kafka: KafkaSettings) -> AppRequests:
    """The releases and requests of sinks and tables."""
    return Requests(kafka, kafka.topics.control.apps, APPS, lambda app: f"lozenge-requests-{app}")


def words_of(app: str) -> Words:
    """How sentences name a sink or a table."""
    kind, _, name = app.partition("-")
    return Words(f"the {kind} {name}", name, f"{kind}.toml", f"lozenge {kind}")


def deployment_of(state: AppState, declaration: Mapping[str, Any], reason: str) -> list[AppRow]:
    """Requests this declaration: as the release that has it, or as a new one. Raises UsageError if it is in force."""
    return releases.deployment_of(APPS, state, declaration, reason, words_of(state.name))


def rollback_of(
    state: AppState, to: str, read: Callable[[Mapping[str, Any]], T], check: Callable[[T, str], object]
) -> list[AppRow]:
    """Requests an earlier release: `to`, such as "r2", or the one before that in force for "".

    `read` makes of its declaration what `check` looks at. Raises UsageError, what `check` raises, and ConfigError for a
    declaration that this version of the platform cannot read.
    """
    words = words_of(state.name)
    request = releases.rollback_of(APPS, state, to, words)
    doing = f"rolling {words.what} back to {name_of(request.release)}"
    try:
        declared = read(state.releases[request.release].declaration)
    except ValueError as error:
        raise ConfigError(f"{doing}: this version of the platform cannot run it: {problem_of(error)}") from error
    check(declared, doing)
    return [request]


def paused(state: AppState, is_paused: bool) -> list[AppRow]:
    """Requests that it does nothing, or resumes; nothing if that is requested already. Raises UsageError."""
    request = releases.deployed(state, "pausing" if is_paused else "resuming", words_of(state.name))
    return [releases.changed(request, paused=is_paused)] if request.paused != is_paused else []


def scaled(state: AppState, instances: int, partitions: int) -> list[AppRow]:
    """Requests so many instances of a sink, which share so many `partitions`; nothing if it has them already.

    Raises UsageError for a table, and for more instances than partitions.
    """
    request = releases.deployed(state, "scaling", words_of(state.name))
    if refusal := _not_scaled(state, instances, partitions):
        raise UsageError(f"scaling {words_of(state.name).what} to {instances} instances: {refusal[0]}", hint=refusal[1])
    return [releases.changed(request, instances=instances)] if request.instances != instances else []


def _not_scaled(state: AppState, instances: int, partitions: int) -> tuple[str, str] | None:
    """Why it cannot have so many instances, and what to do; None if it can."""
    if is_table(state.name) and instances != 1:
        return "one loader reads the whole source", "a second one would fence it; `every` says how often it reads"
    if not 1 <= instances <= partitions:
        return f"they would share {partitions} partitions", f"1 to {partitions}: each instance needs a partition"
    return None
