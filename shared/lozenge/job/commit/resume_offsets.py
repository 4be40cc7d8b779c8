"""The offsets at which a job starts, and a refusal where events would be skipped silently.

A group's offsets expire, retention passes a job that was down for long, or a topic is shortened or created again. Only
for the second case the manifest says beforehand what to do (`missed`); in the others an operator has to decide.
"""

from collections.abc import Collection, Mapping
from typing import TypeVar

from lozenge.detector.manifest import Manifest
from lozenge.errors import OffsetsLost
from lozenge.kafka.group_offsets import Positions
from lozenge.process.logging import logger
from lozenge.protocol.coverage import OFFSETS_RESET, CoverageSegment

T = TypeVar("T")


def within(values: Mapping[int, T], partitions: Collection[int]) -> dict[int, T]:
    """Those of the `values` that belong to `partitions`."""
    return {partition: value for partition, value in values.items() if partition in partitions}


def resolve_start_offsets(
    app: str,
    topic: str,
    positions: Positions,
    bounds: Mapping[int, tuple[int, int]],
    known: CoverageSegment | None,
    missed: str,
    *,
    stateless: bool = True,
) -> dict[int, int]:
    """The offsets at which `app` resumes; `bounds` are the earliest offset and the end of each partition of `topic`.

    `known` is the newest coverage segment of the present topic. None means that the detector never ran: then any start
    is right, as it is in a new partition. Events that retention has removed are skipped where `missed` is "skip".
    Offsets that another tool has moved are taken if the detector is `stateless`: a state belongs to the offsets that
    were committed with it. Raises OffsetsLost.
    """
    offsets, problems, gone = dict(positions.offsets), [], 0
    for partition, (earliest, end) in sorted(bounds.items()):
        offset = offsets[partition]
        if known is not None and partition in known.since and partition in positions.missing:
            last = known.since[partition]
            problems.append(f"partition {partition}: the committed offset has expired; the last known one is {last}")
        elif offset > end:
            problems.append(f"partition {partition}: {offset} is next, but the topic ends at {end}: it was shortened")
        elif offset < earliest:
            gone += earliest - offset
            offsets[partition] = earliest
            if missed == "stop":
                problems.append(f"partition {partition}: {offset} is next, but the earliest is {earliest}")
        elif not stateless and known is not None and partition in known.since and partition in positions.moved:
            problems.append(
                f"partition {partition}: another tool has moved the offset to {offset}, and the state is of another one"
            )
    if problems:
        state = "" if stateless else " with --state rebuild or fresh"
        raise OffsetsLost(
            f"starting {app}: it cannot resume at its committed offsets of {topic}",
            problems=problems,
            hint=f"`lozenge offsets {app} --earliest` (or --latest, --at, --to) resumes there{state}, and `lozenge "
            f'coverage {app}` keeps the gap; missed = "skip" in [tool.lozenge] skips what retention has removed',
        )
    if gone:
        logger().error(f"{app}: retention removed {gone} unprocessed events; they are skipped")
    return offsets


def is_far_behind(
    offsets: Mapping[int, int], ends: Mapping[int, int], declaration: Manifest, known: CoverageSegment | None
) -> bool:
    """Whether a newest-first job skips its backlog and backfills it: where that is more than one batch.

    Not at its first start, of which no coverage would show the gap, nor after an operator has reset the offsets.
    """
    if declaration.backlog == "oldest-first" or known is None or known.reason == OFFSETS_RESET:
        return False
    return sum(ends[p] - offset for p, offset in offsets.items()) > declaration.max_batch


def refuse_recreated_topic(app: str, topic: str, known: CoverageSegment | None, input_id: str) -> None:
    """Raises OffsetsLost if the topic, whose id is `input_id`, was created again since the segment `known`."""
    if known is not None and known.input_id not in ("", input_id):
        raise OffsetsLost(
            f"starting {app}: {topic} was deleted and created again since {app} last processed it",
            problems=["the committed offsets are those of the deleted topic"],
            hint=f"`lozenge offsets {app} --earliest` processes all of the new topic, --latest what comes from now on",
        )
