"""Alarms about channels that do not deliver: a person has to act, and other channels report it.

They are about the entity "channel:NAME". The channel itself gets them too, if a route says so.
"""

from collections.abc import Collection, Iterable, Iterator

from lozenge_downstream.model import ChannelTrouble, PublishedAlert
from lozenge_downstream.pipeline.alarms import alarm, hourly_id


def channel_alarms(
    troubles: Iterable[ChannelTrouble], channels: Collection[str], now: float
) -> Iterator[PublishedAlert]:
    """One alarm an hour for each channel of the routing file and kind of trouble, while there is new trouble."""
    for trouble in troubles:
        if trouble.channel in channels:
            title, text = _explained(trouble)
            id = hourly_id(trouble.at, "channel", trouble.channel, trouble.kind)
            yield alarm(id, "channel", trouble.channel, f"channel_{trouble.kind}", title, text, now)


def _explained(trouble: ChannelTrouble) -> tuple[str, str]:
    name, count = trouble.channel, trouble.deliveries
    match trouble.kind:
        case "disabled":
            waits = f"Its {count} messages wait.\n- fix what refuses them, then `lozenge channels enable {name}`"
            return f"channel {name} is disabled", f"{name} is disabled: {trouble.error}. {waits}"
        case "failed":
            then = f"`lozenge channels retry {name}` sends them again"
            text = f"{count} messages to {name} failed in the last hour; the last: {trouble.error}."
            return f"channel {name} has failed messages", f"{text}\n- fix what refuses them, then {then}"
        case _:
            then = "They are retried until they are sent or have failed"
            text = f"{count} messages to {name} are retried after several attempts; the last: {trouble.error}. {then}."
            return f"channel {name} does not deliver", f"{text}\n- `lozenge channels ls` shows what waits"
