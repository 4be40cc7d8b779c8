"""`lozenge sink`: releases of sinks, which a running sink takes after a commit."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lozenge_deploy.cli.options import DRY_RUN, OUTPUT
from lozenge_deploy.cli.printing.output import OutputFormat, say, show, show_readable, show_warnings
from lozenge_deploy.cli.sink.requests import make, scale_app, show_history
from lozenge_deploy.cli.wait import MESSAGE

if TYPE_CHECKING:
    from lozenge.sink_declarations.project import Sink

app = typer.Typer(help="Sinks: topics into tables and caches, each with releases.", no_args_is_help=True)
NAME = Annotated[str, typer.Argument(metavar="NAME", help="A sink: a folder of downstream/sinks.")]
TO = Annotated[str, typer.Option(help="A release such as r2; by default the one before.")]


@app.command("ls")
def list_(output: OUTPUT = OutputFormat.TABLE) -> None:
    """List the sinks of the project and those that have releases: kind, release, instances, and what they read."""
    from lozenge.apps import is_sink, sink_app
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.operations.declarations.apps import requests_of_apps
    from lozenge_deploy.operations.declarations.sinks import sink_row

    states = requests_of_apps(KafkaSettings.load()).states()
    declared = {sink_app(name) for name in _declared()}
    rows = [sink_row(name, states.get(name)) for name in sorted({*declared, *filter(is_sink, states)})]
    if output is OutputFormat.JSON:
        show(rows, output)
    else:
        show_readable(rows, output, "there is no sink; downstream/sinks/NAME/sink.toml declares one")


@app.command()
def check(name: NAME, output: OUTPUT = OutputFormat.TABLE) -> None:
    """Check sink.toml, with the streams, keys, fields and variables that it names. No broker is needed.

    Exit code 2: the declaration is wrong; every problem is named at once.
    """
    sink = _checked(name)
    say(f"{name}: sound; a sink of the kind {sink.kind}", {"sink": name, "kind": sink.kind}, output)


@app.command()
def deploy(name: NAME, message: MESSAGE = "", dry_run: DRY_RUN = False, output: OUTPUT = OutputFormat.TABLE) -> None:
    """Release sink.toml, and start the sink if none runs. A running one takes it after a commit; its position stays.

    A declaration that is wrong, or that would make another cache of it, changes nothing. Exit code 2 says so.
    """
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.operations.declarations.apps import requests_of_apps
    from lozenge_deploy.operations.declarations.sinks import deployment_of, effects, last_of

    sink = _checked(name)
    before = last_of(requests_of_apps(KafkaSettings.load()).state_of(sink.app))
    make(sink.app, "deploy", lambda state: deployment_of(state, sink, message), {"reason": message}, dry_run, output)
    show_warnings(effects(before, sink) if before is not None else ())


@app.command()
def rollback(name: NAME, to: TO = "", dry_run: DRY_RUN = False, output: OUTPUT = OutputFormat.TABLE) -> None:
    """Request an earlier release of a sink. What was written stays; the next record is taken by that release."""
    from lozenge.apps import sink_app
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.streams.project import Streams
    from lozenge_deploy.operations.declarations.sinks import rollback_of

    kafka, streams = KafkaSettings.load(), Streams.load()
    make(sink_app(name), "rollback", lambda state: rollback_of(state, to, streams, kafka), {"to": to}, dry_run, output)


@app.command()
def scale(
    name: NAME,
    instances: Annotated[int, typer.Option("--instances", min=1, help="How many processes share its work.")],
    dry_run: DRY_RUN = False,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Set how many instances share the partitions of a cache, or the tables of an archive."""
    from lozenge.apps import sink_app

    scale_app(sink_app(name), instances, dry_run, output)


@app.command()
def history(name: NAME, output: OUTPUT = OutputFormat.TABLE) -> None:
    """List the releases of a sink: who made each, when and why."""
    from lozenge.apps import sink_app

    show_history(sink_app(name), output)


def _checked(name: str) -> "Sink":
    """The sink of the project, with warnings said; raises as `checked_sink` does."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.streams.project import Streams
    from lozenge_deploy.operations.declarations.sinks import checked_sink

    found = checked_sink(name, Streams.load(), KafkaSettings.load())
    show_warnings(found.warnings)
    return found.sink


def _declared() -> list[Any]:
    """The names of the sinks of the project here; none outside of a project."""
    from lozenge.errors import ConfigError
    from lozenge.sink_declarations.project import names_in
    from lozenge.streams.project import project_folder

    try:
        return names_in(project_folder())
    except ConfigError:
        return []
