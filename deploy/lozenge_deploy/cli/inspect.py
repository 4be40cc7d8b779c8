"""Commands that show what is there: describe, peek, state, doctor."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lozenge.errors import BrokerUnavailable, LozengeError, UsageError
from lozenge_deploy.cli.options import CARD_NUMBERS, NAME, OUTPUT, app_of, folder_of
from lozenge_deploy.cli.printing.output import OutputFormat, show, show_fields
from lozenge_deploy.cli.printing.terminal import echo

if TYPE_CHECKING:
    from lozenge.detector.manifest import Manifest
    from lozenge.streams.definition import StreamDefinition
    from lozenge_deploy.control.deployments_view import Deployment
    from lozenge_deploy.releases.release import Release

BROKER_SECONDS = 1.0


def describe(name: NAME = ".", output: OUTPUT = OutputFormat.TABLE) -> None:
    """Show what a detector declares, its topics and its live release; from its release if it has no folder here."""
    fields = _fields_of(name)
    if output is not OutputFormat.JSON:
        fields = {name: value for name, value in fields.items() if value not in ({}, [])}
    show_fields(fields, output)


def peek(
    topic: Annotated[str, typer.Argument(metavar="[TOPIC]", help="A topic's full name; else all are listed.")] = "",
    count: Annotated[int, typer.Option("-n", min=1, max=10_000, help="How many of the latest records.")] = 10,
    card_numbers: CARD_NUMBERS = False,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Show the latest records of a topic, decoded; card numbers are masked. Without TOPIC list all topics."""
    from lozenge.contracts.record import format_positions
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.kafka.topic_admin import partitions
    from lozenge_deploy.observe.topic_tail import latest
    from lozenge_deploy.operations import audit

    kafka = KafkaSettings.load()
    if not topic:
        show([{"topic": name, "partitions": count} for name, count in sorted(partitions(kafka).items())], output)
        return
    rows = list(latest(kafka, topic, count, card_numbers=card_numbers))
    if card_numbers and rows:
        positions = format_positions((row["partition"], row["offset"]) for row in rows)
        audit.record(kafka, audit.CARD_NUMBERS_SHOWN, f"{topic} {positions}")
    show(rows, output, brief=("partition", "offset", "time", "key", "value"), card_numbers=card_numbers)


def state(
    name: NAME,
    key: Annotated[str, typer.Argument(metavar="KEY", help="An entity; of an aggregate, an alert's id.")],
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Show a detector's state of one entity."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.observe.state_reader import state_of

    app = app_of(name)
    entries = list(state_of(KafkaSettings.load(), app, key))
    if entries or output is OutputFormat.JSON:
        show(entries, output)
    else:
        echo(f"{app} has no state of {key}", err=True)


def doctor(output: OUTPUT = OutputFormat.TABLE) -> None:
    """Check what Lozenge needs on this machine, and show how to fix what is missing."""
    from lozenge_deploy.local.preflight import run_checks

    checks = list(run_checks())
    show([{"check": each.what, "ok": "yes" if each.ok else "NO", "found": each.found} for each in checks], output)
    failed = [each for each in checks if not each.ok]
    for each in failed:
        echo(f"{each.what}: {each.fix}", err=True)
    if failed:
        raise typer.Exit(1)


def _fields_of(name: str) -> dict[str, Any]:
    """From the folder, or else from the deployed release; raises UsageError if there is neither.

    A folder needs no broker: without one, `live` says so.
    """
    from lozenge_deploy.releases.detector_catalog import detector_in

    try:
        folder = folder_of(name)
    except UsageError as missing:
        return _released(app_of(name), missing)
    found = detector_in(folder)
    return {**_declared(found.name, found.version, found.declaration, found.stream), **_live(found.name)}


def _released(name: str, missing: UsageError) -> dict[str, Any]:
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.control.deployments_view import Deployments
    from lozenge_deploy.releases.release_store import Releases

    kafka = KafkaSettings.load()
    try:
        with Deployments(kafka) as deployments:
            member = deployments.all().get(name)
    except BrokerUnavailable:
        raise missing from None
    if member is None:
        raise missing
    release = Releases(kafka).get(name, member.spec.release)
    return {
        **_declared(name, release.version, release.declaration, release.stream),
        "defaults": release.settings,
        **_status(member, release),
    }


def _declared(name: str, version: str, declared: "Manifest", stream: "StreamDefinition") -> dict[str, Any]:
    from lozenge.detector.resources import isolation_with
    from lozenge.kafka.settings import KafkaSettings

    topics = KafkaSettings.load().topics
    return {
        "name": name,
        "version": version,
        **declared.model_dump(mode="json", exclude_none=True),
        "isolation": isolation_with(declared.mode, declared.resources, declared.isolation),
        "stream": stream.name,
        "key": stream.key(declared.key),
        "reads": stream.events(topics, declared.key),
        "alerts": topics.detector(name).alerts,
        "dead letters": topics.dead_letters(name),
        "state topic": topics.detector(name).state,
        "group": topics.prefixed(name),
    }


def _live(name: str) -> dict[str, Any]:
    """Which release is live, with which overrides; None if it was never deployed."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.kafka.topic_admin import partitions
    from lozenge_deploy.control.deployments_view import Deployments
    from lozenge_deploy.releases.release_store import Releases

    try:
        kafka = KafkaSettings.load()
        partitions(kafka, timeout=BROKER_SECONDS)  # the one call with a short timeout
        with Deployments(kafka) as deployments:
            member = deployments.all().get(name)
        if member is None:
            return {"live": None}
        return _status(member, Releases(kafka).get(name, member.spec.release))
    except LozengeError as error:
        return {"live": f"unknown: {error.message}"}


def _status(member: "Deployment", release: "Release") -> dict[str, Any]:
    """What is deployed, and as what it runs."""
    from lozenge_deploy.operations import sharing_check

    live = member.observed.release if member.observed else ""
    digest = member.observed.digest if member.observed else ""
    given = member.spec.model_dump(mode="json", include={"max_batch", "trigger", "cores", "memory_mb", "isolation"})
    if member.spec.instances > 1:
        given["instances"] = member.spec.instances
    overrides = {**member.spec.settings, **{name: value for name, value in given.items() if value is not None}}
    isolation = str(sharing_check.isolation(release, member.spec, {}))
    return {
        "live": live or None,
        "deployed": member.spec.release,
        "overrides": overrides,
        "isolation": isolation,
        **({"settings digest": digest} if digest else {}),
    }
