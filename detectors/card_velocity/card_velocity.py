"""Flags a card that is used too often within a few minutes, approved or not: somebody tests it.

Event time is divided into windows of equal length. In each window a card raises one alert per band that its count
reaches. The alert names the events that reached the band and has the time of the last of them, in whatever batches they
came. It misses a burst that the edge of a window divides below the first band, slow testing, and attacks that change
cards. An authorisation that is later than the declared lateness may not be counted.
"""

from datetime import timedelta
from typing import Annotated

from pydantic import Field
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lozenge import Detector, Duration, Settings, Tables, alert


class CardVelocity(Settings):
    """`bands` are rising numbers of authorisations in one `window`; each band that is reached raises an alert."""

    window: Duration = timedelta(minutes=10)
    bands: Annotated[tuple[int, ...], Field(min_length=1)] = (6, 12, 24)


def detect(events: DataFrame, settings: CardVelocity, tables: Tables) -> DataFrame:
    """A card whose count jumps over several bands within one batch raises an alert for each."""
    # a set, so that a repeated event counts once; with times, so that each band names its own events
    uses = F.collect_set(F.struct("event_time", "event_id"))
    length = f"{settings.window.total_seconds():.6f} seconds"
    windows = events.groupBy(F.window("event_time", length), "card_id").agg(F.sort_array(uses).alias("uses"))
    bands = F.array(*(F.lit(band) for band in settings.bands))
    reached_bands = F.filter(bands, lambda band: band <= F.size("uses"))
    reached = windows.withColumn("band", F.explode(reached_bands)).withColumn("uses", F.slice("uses", 1, F.col("band")))
    first, last = F.element_at("uses", 1)["event_time"], F.element_at("uses", -1)["event_time"]
    reason = F.format_string(
        "used %s times within %s s, from %s UTC on",
        "band",
        F.unix_seconds(last) - F.unix_seconds(first),
        F.date_format(first, "yyyy-MM-dd HH:mm:ss"),
    )
    return reached.select(
        *alert(
            entity=F.col("card_id"),
            window=F.col("window"),
            band=F.col("band"),
            at=last,
            reason=reason,
            score=F.array_position(bands, F.col("band")) / len(settings.bands),
            evidence=F.col("uses.event_id"),
            values={"uses": F.col("band"), "window_start": F.col("window.start"), "window_end": F.col("window.end")},
        )
    )


detector = Detector(detect, settings=CardVelocity)
