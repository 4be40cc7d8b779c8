"""What of the recent raw records would change under the folder of a stream; nothing is written."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.stream_releases import present_state
from lozenge.kafka.topic_admin import partitions
from lozenge.kafka.topic_reader import bounds, offsets_at
from lozenge.protocol.stream_releases import release_name
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.release_files import definition_of
from lozenge_deploy.operations.streams.upstream_tools import asked

Ranges = dict[int, tuple[int, int]]


def plan(
    kafka: KafkaSettings,
    definition: StreamDefinition,
    moments: tuple[datetime, datetime | None],
    most: int,
    examples: int,
) -> dict[str, Any]:
    """What differs of the raw records between two moments (None: now), `most` of them, the newest, of each topic.

    Compared with the release in force, which `release` names: None if its texts are not kept. Raises the error
    of upstream's tool, BrokerUnavailable.
    """
    state = present_state(kafka, definition.name)
    release = state.running
    topics = {*definition.raw_topics}
    if release is not None:
        topics |= {*definition_of(release.files, definition.name).raw_topics}
    existing = partitions(kafka)
    ranges = {
        topic: offsets
        for topic in sorted(map(kafka.topics.prefixed, topics))
        if topic in existing and (offsets := newest(_between(kafka, topic, existing[topic], *moments), most))
    }
    request = {"files": release.files if release is not None else None, "ranges": ranges, "examples": examples}
    found: dict[str, Any] = asked(
        f"planning the stream {definition.name}",
        "lozenge_upstream.plan_release",
        definition.name,
        given=json.dumps(request).encode(),
    )
    return {"release": release_name(state.to_run) if release is not None else None, **found}


def newest(ranges: Mapping[int, tuple[int, int]], most: int) -> Ranges:
    """The newest `most` offsets of `ranges`, evenly over the partitions; empty ones are left away."""
    found: Ranges = {}
    by_size = sorted(ranges.items(), key=lambda each: each[1][1] - each[1][0])
    remaining = most
    for number, (partition, (begin, end)) in enumerate(by_size):
        share = min(end - begin, remaining // (len(by_size) - number))
        remaining -= share
        if share > 0:
            found[partition] = (end - share, end)
    return dict(sorted(found.items()))


def _between(kafka: KafkaSettings, topic: str, count: int, begin: datetime, until: datetime | None) -> Ranges:
    starts = offsets_at(kafka, topic, count, begin)
    ends = (
        {partition: end for partition, (_, end) in bounds(kafka, topic, count).items()}
        if until is None
        else offsets_at(kafka, topic, count, until)
    )
    return {partition: (start, max(start, ends[partition])) for partition, start in starts.items()}


def sentences(found: Mapping[str, Any]) -> list[str]:
    """The answer in words."""
    against = f"compared with {found['release']}" if found["release"] else "and nothing is deployed to compare with"
    lines = [f"{found['records']:,} raw records {against}"]
    fields = ", ".join(f"{name} {count:,}" for name, count in found["fields"].items())
    lines.append(f"{found['events_differ']:,} events differ{f' ({fields})' if fields else ''}")
    for name, count in (("dead letters", found["more_dead_letters"]), ("skipped records", found["more_skipped"])):
        lines.append(f"{abs(count):,} {'fewer' if count < 0 else 'more'} {name}")
    lines += [f"{count:,} records: {kind}" for kind, count in found["outcomes"].items()]
    return lines
