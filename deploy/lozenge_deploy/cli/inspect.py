"""The verbs that look at what is there: describe, peek, state, doctor."""

from typing import Annotated

import typer

from lozenge_deploy.cli.options import NAME, OUTPUT, Format, app_of, show


def describe(name: NAME = ".", output: OUTPUT = Format.TABLE) -> None:
    """Show what a detector declares, its topics, and what of it is live; its release's words if it has no folder."""
    from lozenge_deploy.cli.describe import facts_of

    facts = facts_of(name)
    if output is Format.JSON:
        show([facts], output)
    else:
        show([{"what": what, "value": value} for what, value in facts.items() if value not in ({}, [])], output)


def peek(
    topic: Annotated[str, typer.Argument(help="A topic's full name.")],
    count: Annotated[int, typer.Option("-n", min=1, max=10_000, help="How many of the latest records.")] = 10,
    output: OUTPUT = Format.TABLE,
) -> None:
    """Show the latest records of a topic, decoded."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.observe.topic_tail import latest

    show(
        list(latest(KafkaSettings.load(), topic, count)), output, brief=("partition", "offset", "time", "key", "value")
    )


def state(
    name: NAME,
    key: Annotated[str, typer.Argument(metavar="KEY", help="A card, an account...; of an aggregate, an alert's id.")],
    output: OUTPUT = Format.TABLE,
) -> None:
    """Show what a detector remembers of one entity."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.observe.state_reader import remembered

    app = app_of(name)
    entries = list(remembered(KafkaSettings.load(), app, key))
    if entries or output is Format.JSON:
        show(entries, output)
    else:
        typer.echo(f"{app} remembers nothing of {key}", err=True)


def doctor(output: OUTPUT = Format.TABLE) -> None:
    """Check what Lozenge needs on this machine, and what to do about each thing that is missing."""
    from lozenge_deploy.local.preflight import examine

    findings = list(examine())
    show([{"what": f.what, "fit": "yes" if f.fit else "NO", "found": f.found} for f in findings], output)
    unfit = [finding for finding in findings if not finding.fit]
    for finding in unfit:
        typer.echo(f"{finding.what}: {finding.cure}", err=True)
    if unfit:
        raise typer.Exit(1)
