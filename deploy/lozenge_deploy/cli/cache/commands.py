"""`lozenge cache`: what a cache has of a key, and whether it has what its topic has."""

import json
import time
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from lozenge.errors import LozengeError, UsageError
from lozenge_deploy.cli.options import OUTPUT
from lozenge_deploy.cli.printing.output import OutputFormat, moment, show, show_fields
from lozenge_deploy.cli.printing.terminal import echo

if TYPE_CHECKING:
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.sink_declarations.cache_sink import CacheSink

app = typer.Typer(help="Caches: the latest record of each key on a server.", no_args_is_help=True)
NAME = Annotated[str, typer.Argument(metavar="NAME", help="A sink of the kind cache.")]
PROGRESS_SECONDS = 2.0


@app.command()
def get(
    name: NAME,
    key: Annotated[str, typer.Argument(metavar="KEY", help="As its topic has it; values of a fold are joined by |.")],
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Show the entry that a cache has for a key, of which record it is, and how old.

    It asks the server of the cache, and no broker. Exit code 1: there is no such key, or its entry was deleted or has
    expired. Exit code 2: there is no such cache, or a variable of its URL is not set. Exit code 3: the server does not
    answer.
    """
    from lozenge.cache.stores import reader_of
    from lozenge_deploy.observe.cache_report import entry_fields, entry_of

    sink = _cache(name)
    with closing(reader_of(sink)) as reader:
        found = entry_of(reader, sink.name, key)
    fields = entry_fields(found, json.loads(found.value or "null"))
    if output is not OutputFormat.JSON:
        fields |= {"at": moment(fields["at"])}
        fields = {field: value for field, value in fields.items() if value is not None}
    show_fields(fields, output)


@app.command()
def verify(name: NAME, output: OUTPUT = OutputFormat.TABLE) -> None:
    """Prove that a cache has the latest record of each key of its topic: read the topic, and compare every key.

    It compares by the release that is deployed, or else by the folder. The topic is read up to the positions that the
    server has. A key whose records the topic no longer has is not checked, and one that is written meanwhile counts as
    newer. Exit code 1 if a key is missing, is older or differs, or is in no record. Exit code 3: the broker or the
    server does not answer.
    """
    from lozenge.cache.cached_topic import cached_topic
    from lozenge.cache.stores import lifetimes_of, reader_of
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.streams.project import Streams
    from lozenge_deploy.observe.cache_report import verified

    kafka = KafkaSettings.load()
    sink, release = _deployed(name, kafka)
    topic = cached_topic(sink, kafka, {each.name: each for each in Streams.load().definitions})
    with closing(reader_of(sink)) as reader:
        found = verified(kafka, sink.name, topic, reader, lifetimes_of(sink), _Progress(topic.name))
    counts = {what.value: each.count for what, each in found.differences.items()}
    row = {"cache": sink.name, "release": release, "right": found.right, **counts}
    row |= {"expired": found.expired, "newer": found.newer, "unchecked": found.unchecked}
    examples = {what.value: each.examples for what, each in found.differences.items() if each.examples}
    show([row | {"examples": examples} if output is OutputFormat.JSON else row], output)
    if not found.clean:
        raise LozengeError(
            f"verifying the cache {sink.name}: {'; '.join(found.problems)}",
            hint=f"`lozenge cache get {sink.name} KEY` shows an entry. A key that was erased is missing until its "
            f"topic has forgotten it. To fill the cache again from its topic, pause sink-{sink.name}, "
            "delete what the server has of it, and resume it",
        )


class _Progress:
    """A line on standard error now and then."""

    def __init__(self, topic: str) -> None:
        self._topic, self._said_at = topic, time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        if time.monotonic() - self._said_at >= PROGRESS_SECONDS:
            self._said_at = time.monotonic()
            echo(f"read {done:,} of {total:,} offsets of {self._topic}", err=True)


def _deployed(name: str, kafka: "KafkaSettings") -> tuple["CacheSink", str | None]:
    """The cache as it is deployed, with its release; as its folder declares it if it is not. Raises as `_cache`."""
    from lozenge.apps import sink_app
    from lozenge.protocol.declared_releases import name_of
    from lozenge.sink_declarations.cache_sink import CacheSink
    from lozenge_deploy.operations.declarations.apps import requests_of_apps
    from lozenge_deploy.operations.declarations.sinks import last_of

    state = requests_of_apps(kafka).state_of(sink_app(name.removeprefix("sink-")))
    sink = last_of(state)
    if state.request is None or not isinstance(sink, CacheSink):
        return _cache(name), None
    return sink, name_of(state.request.release)


def _cache(name: str) -> "CacheSink":
    """The cache of that name, or of its app; raises UsageError if it is none, ConfigError if it is wrong."""
    from lozenge.sink_declarations.cache_sink import CacheSink
    from lozenge.sink_declarations.project import sink_named
    from lozenge.streams.project import project_folder

    sink = sink_named(project_folder(), name.removeprefix("sink-"))
    if not isinstance(sink, CacheSink):
        raise UsageError(
            f"looking for the cache {sink.name}: it is a sink of the kind {sink.kind}",
            hint="`lozenge archive ls` shows its tables",
        )
    return sink
