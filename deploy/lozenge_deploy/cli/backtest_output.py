"""How the outcome of a trial is told to a person."""

from collections.abc import Mapping
from typing import Any

import typer

from lozenge_deploy.cli.options import Format, show


def tell(outcome: Mapping[str, Any], examples: int, output: Format) -> None:
    """One sentence, then at most `examples` alerts of each sort."""
    live = f"against {outcome['release']}" if outcome["release"] else "and no live release has told anything"
    new, lost, dead = outcome["new"], outcome["lost"], outcome["dead_letters"]
    letters = f", {len(dead)} events could not be judged" if dead else ""
    typer.echo(
        f"{outcome['alerts']} alerts of {outcome['events']} events since {outcome['since']}: "
        f"{len(new)} new, {len(lost)} lost {live}{letters}"
    )
    rows = [{"": sort, **told} for sort, tolds in (("new", new), ("lost", lost)) for told in tolds[:examples]]
    if rows:
        show(rows, output, brief=("", "event_time", "entity", "reason"))
    for error in dead[:examples]:
        typer.echo(f"not judged: {error}")


def tell_cost(cost: Mapping[str, float | None], release: str | None) -> None:
    """One sentence on processor seconds per million events, beside those of the live `release`, if any."""
    then, now, ratio = cost["then"], cost["now"], cost["ratio"]
    if then is None:
        said = "nothing was judged"
    elif release is None:
        said = f"{then} processor seconds per million events; nothing is live to compare that with"
    elif now is None:
        said = f"{then} processor seconds per million events; {release} does not tell what it takes"
    else:
        said = f"{then} processor seconds per million events, {release} takes {now}: {ratio} times as much"
    typer.echo(f"cost: {said}")
