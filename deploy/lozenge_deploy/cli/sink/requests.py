"""What commands say of requests of sinks and tables: made, only shown, or not needed."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lozenge.apps import is_table
from lozenge.errors import UsageError
from lozenge_deploy.cli.printing.output import OutputFormat, say, show
from lozenge_deploy.cli.wait import interruptible

if TYPE_CHECKING:
    from lozenge.protocol.app_requests import AppRow, AppState

_POLL_SECONDS = 0.2
_STAYS = {"sink": "its position stays", "table": "its last good version stays"}


def make(
    app: str,
    what: str,
    decide: "Callable[[AppState], list[AppRow]]",
    detail: dict[str, Any],
    dry_run: bool,
    output: OutputFormat,
    then: Callable[[], None] = lambda: None,
) -> None:
    """Makes what `decide` decides, does what is to be done `then`, and says what is requested now.

    Raises what these raise, and BrokerUnavailable.
    """
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.protocol.app_requests import AppRequest
    from lozenge_deploy.operations.declarations.apps import requests_of_apps

    requests, kind = requests_of_apps(KafkaSettings.load()), app.partition("-")[0]
    made = requests.make(app, decide, action=f"{kind} {what}", detail=detail, dry_run=dry_run)
    request = next((row for row in made if isinstance(row, AppRequest)), None)
    if request is None:
        say(f"{app}: no change", {"app": app, "changed": False}, output)
        return
    if not dry_run:
        then()
    many = f"{request.instances} instance{'s' if request.instances > 1 else ''}"
    said = f"r{request.release}, {many}, {'paused' if request.paused else 'running'}; {_STAYS[kind]}"
    row = {"app": app, "release": request.release, "instances": request.instances, "paused": request.paused}
    say(f"{app}: {'would be ' if dry_run else ''}{said}", {**row, "changed": not dry_run}, output)


def change_state(folder: Path, app: str, verb: str, limit: float | None, dry_run: bool, output: OutputFormat) -> None:
    """Pauses, resumes or retires a sink or a loader: a request, which its platform follows.

    A sink that stops commits what its topics have by then; the rows of a table stay. If the platform in `folder` runs
    it, this waits up to `limit` seconds, or not at all. Raises UsageError for what is not deployed and for other verbs,
    ChangeTimedOut, BrokerUnavailable.
    """
    from lozenge_deploy.operations.declarations.apps import paused, requests_of_apps, words_of

    words = words_of(app)
    if verb not in ("pause", "resume", "retire"):
        raise UsageError(
            f"cannot {verb} {app}: it is no detector",
            hint=f"`lozenge pause {app}`, then `lozenge resume {app}` starts it again",
        )

    def wait() -> None:
        if limit is not None:
            _await(folder.absolute(), app, limit, runs=verb == "resume")

    if verb != "retire":
        make(app, verb, lambda state: paused(state, verb == "pause"), {}, dry_run, output, wait)
        return
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.operations.declarations.releases import deployed

    requests = requests_of_apps(KafkaSettings.load())
    deployed(requests.state_of(app), "retiring", words)
    if not dry_run:
        requests.retire(app, action=f"{app.partition('-')[0]} retire")
        wait()
    said = f"{'would be ' if dry_run else ''}retired; {_STAYS[app.partition('-')[0]]}"
    say(f"{app}: {said}", {"app": app, "retired": not dry_run}, output)


def scale_app(app: str, instances: int, dry_run: bool, output: OutputFormat) -> None:
    """Requests so many instances of a sink; raises UsageError for a table, and as `make` does."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.operations.declarations.apps import scaled

    partitions = KafkaSettings.load().partitions
    make(app, "scale", lambda state: scaled(state, instances, partitions), {"instances": instances}, dry_run, output)


def show_history(app: str, output: OutputFormat) -> None:
    """Lists the releases of a sink or a table, the newest first; raises UsageError if there are none."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.protocol.declared_releases import DeclaredRelease
    from lozenge_deploy.operations.declarations.apps import requests_of_apps, words_of
    from lozenge_deploy.operations.declarations.releases import history_rows
    from lozenge_deploy.operations.declarations.sinks import reads_of

    def shown(release: DeclaredRelease) -> dict[str, Any]:
        return {"columns": release.declaration.get("columns")} if is_table(app) else {"reads": reads_of(release)}

    state = requests_of_apps(KafkaSettings.load()).state_of(app)
    show(history_rows(state, words_of(app), shown), output)


def _await(folder: Path, app: str, limit: float, *, runs: bool) -> None:
    """Waits until the platform in `folder` runs it or not, if that is the platform of these requests."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.process.waiting import wait_until
    from lozenge_deploy.control.client import ChangeTimedOut
    from lozenge_deploy.local.running_platform import running

    def programs() -> dict[str, Any] | None:
        state = running(folder)
        return state["programs"] if state and state["bootstrap"] == KafkaSettings.load().bootstrap else None

    def done() -> bool:
        return (found := programs()) is None or (app in found) == runs

    with interruptible("lozenge status"):
        is_done = wait_until(done, limit, poll=_POLL_SECONDS)
    if not is_done:
        raise ChangeTimedOut(
            f"changing {app}: not done after {limit:.0f} s", hint="it continues; `lozenge status` shows its progress"
        )
