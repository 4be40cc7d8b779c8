"""Flags a device that pays with too many different cards within a day: somebody tries out stolen cards on it.

The latest use of each card counts, approved or not. Each band of cards that is reached raises one alert, until the
device has been quiet. It misses thieves who change devices, or present each card as another device.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Annotated

from pydantic import AfterValidator, Field
from pyspark.sql import DataFrame

from lozenge import Alert, Detector, Duration, Event, Fold, Settings, State, Tables, fold


def _rising(bands: tuple[int, ...]) -> tuple[int, ...]:
    if any(later <= earlier for earlier, later in pairwise((1, *bands))):
        raise ValueError("bands rise, from 2 on")
    return bands


class SharedDevice(Settings):
    """`bands` are rising numbers of cards that one device uses within any span of `within`."""

    within: Duration = timedelta(hours=24)
    bands: Annotated[tuple[int, ...], Field(min_length=1), AfterValidator(_rising)] = (4, 8, 16)


class Use(State):
    """The latest use of one card."""

    at: datetime
    card_id: str
    event_id: str


class Device(State):
    """The cards of one device, by the time of their latest use, and the highest band that was reported."""

    uses: tuple[Use, ...] = ()
    reported: int = 0


def step(device: Device, event: Event, settings: SharedDevice) -> Iterator[Alert]:
    """State never holds more cards than the last band, nor uses that are older than `within`."""
    use = Use(at=event.event_time, card_id=event.card_id, event_id=event.event_id)
    latest = {each.card_id: each for each in sorted((*device.uses, use), key=_order)}
    newest = max(each.at for each in latest.values())
    uses = sorted((each for each in latest.values() if newest - each.at <= settings.within), key=_order)
    device.uses = tuple(uses[-settings.bands[-1] :])
    reached = max((band for band in settings.bands if band <= len(device.uses)), default=0)
    if reached > device.reported:
        yield _alert(device.uses, reached, settings)
    # below the first band the device has been quiet, and its bands count again
    device.reported = max(reached, device.reported) if reached else 0


def detect(events: DataFrame, settings: SharedDevice, tables: Tables) -> Fold[Device]:
    """The uses of each device."""
    # an hour of grace: in a fast replay of history, other devices may run ahead of this one
    return fold(events, by="device_id", state=Device, step=step, expires=settings.within, grace=timedelta(hours=1))


def _order(use: Use) -> tuple[datetime, str]:
    return use.at, use.event_id


def _alert(uses: tuple[Use, ...], band: int, settings: SharedDevice) -> Alert:
    lasting = uses[-1].at - uses[0].at
    return Alert(
        reason=f"paid with {len(uses)} cards within {_spoken(lasting)}, from {uses[0].at:%Y-%m-%d %H:%M:%S} UTC on",
        score=(settings.bands.index(band) + 1) / len(settings.bands),
        evidence=[use.event_id for use in uses],
        values={"cards": " ".join(sorted(use.card_id for use in uses)), "band": band},
    )


def _spoken(lasting: timedelta) -> str:
    minutes, seconds = divmod(round(lasting.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


detector = Detector(detect, settings=SharedDevice)
