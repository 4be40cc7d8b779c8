"""Flags a card that is used in two places sooner than anybody could travel from one to the other.

Distances are those of the great circle. Places that are close together count as one, since terminals say only roughly
where they are. Whether a payment was approved does not matter. It misses a copy that is used near its card, or after
long enough, and payments without coordinates.
"""

import math
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import Field
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lozenge import Alert, Detector, Event, Fold, Settings, State, Tables, fold

EARTH_RADIUS_KM = 6371.0
FARTHEST_KM = math.pi * EARTH_RADIUS_KM
"""No place on earth is farther from another."""


class ImpossibleTravel(Settings):
    """`speed_kmh` is the fastest that a cardholder travels; two places less than `least_km` apart count as one."""

    speed_kmh: Annotated[float, Field(ge=100)] = 900.0
    least_km: Annotated[float, Field(ge=0)] = 100.0


class Place(State):
    """Where and when a card was used; degrees north and east."""

    at: datetime
    latitude: float
    longitude: float
    merchant_id: str | None
    country: str | None
    event_id: str


class Journey(State):
    """The latest place of one card."""

    last: Place | None = None


def step(journey: Journey, event: Event, settings: ImpossibleTravel) -> Iterator[Alert]:
    """Compares a place with the latest one so far, in either order of arrival."""
    here = Place(
        at=event.event_time,
        latitude=event.latitude,
        longitude=event.longitude,
        merchant_id=event.merchant_id,
        country=event.country,
        event_id=event.event_id,
    )
    earlier, later = here, here
    if journey.last is not None:
        earlier, later = (journey.last, here) if journey.last.at <= here.at else (here, journey.last)
        reachable = settings.speed_kmh * ((later.at - earlier.at) / timedelta(hours=1))
        distance = kilometres(earlier, later)
        if distance >= settings.least_km and distance > reachable:
            yield _alert(earlier, later, distance, reachable)
    journey.last = later


def detect(events: DataFrame, settings: ImpossibleTravel, tables: Tables) -> Fold[Journey]:
    """Payments where the card was; at 0, 0 in the Atlantic are terminals whose place nobody has entered."""
    latitude, longitude = F.col("latitude"), F.col("longitude")
    on_earth = latitude.between(-90, 90) & longitude.between(-180, 180) & ((latitude != 0) | (longitude != 0))
    there = F.coalesce("card_present", F.lit(True)) & (F.col("amount") >= 0)
    # after that long the card can be anywhere
    expires = timedelta(hours=FARTHEST_KM / settings.speed_kmh)
    # an hour of grace: in a fast replay of history, other cards' payments may run ahead of a card's own
    return fold(
        events.where(on_earth & there),
        by="card_id",
        state=Journey,
        step=step,
        expires=expires,
        grace=timedelta(hours=1),
    )


def kilometres(one: Place, other: Place) -> float:
    """The distance over the great circle, by the haversine formula."""
    north, other_north = math.radians(one.latitude), math.radians(other.latitude)
    over = math.sin((other_north - north) / 2) ** 2
    along = math.sin(math.radians(other.longitude - one.longitude) / 2) ** 2
    # rounding makes it a little more than 1 for two poles of the earth
    return 2 * EARTH_RADIUS_KM * math.asin(math.sqrt(min(1.0, over + math.cos(north) * math.cos(other_north) * along)))


def _alert(earlier: Place, later: Place, distance: float, reachable: float) -> Alert:
    apart = later.at - earlier.at
    return Alert(
        reason=f"used {distance:.0f} km apart within {_spoken(apart)}: at merchant {earlier.merchant_id} in "
        f"{earlier.country}, then at merchant {later.merchant_id} in {later.country}",
        # from 0.5 at the fastest speed to 1 for the same moment
        score=1 - 0.5 * reachable / distance,
        evidence=[earlier.event_id, later.event_id],
        values={"kilometres": round(distance), "seconds_apart": apart.total_seconds()},
    )


def _spoken(apart: timedelta) -> str:
    minutes, seconds = divmod(round(apart.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


detector = Detector(detect, settings=ImpossibleTravel)
