"""Whether what a job should judge next is still there: never a silent jump.

A group's offsets expire, retention passes a job that was down for long, a topic is shortened or made anew. Only the
second can be decided beforehand, by `missed` in the declaration; of the others nobody but a person knows what is right.
"""

from collections.abc import Mapping

from lozenge.detector.manifest import Manifest
from lozenge.errors import OffsetsLost
from lozenge.kafka.positions import Positions
from lozenge.process.logging import logger
from lozenge.protocol.coverage import MOVED, CoverageSegment


def resumable(
    app: str,
    topic: str,
    positions: Positions,
    bounds: Mapping[int, tuple[int, int]],
    known: CoverageSegment | None,
    missed: str,
) -> dict[int, int]:
    """The offsets at which `app` goes on; `bounds` are what `topic` has of each partition.

    `known` is the newest line of its coverage with the present topic's id, None if it never ran: then it may begin
    wherever it likes, as it may in a partition that is new.
    Events that are gone are left out where `missed` says "skip". Raises OffsetsLost.
    """
    offsets, problems, gone = dict(positions.offsets), [], 0
    for partition, (earliest, end) in sorted(bounds.items()):
        offset = offsets[partition]
        if known is not None and partition in known.since and partition in positions.missing:
            last = known.since[partition]
            problems.append(f"partition {partition}: the group's offset is gone; the last that is known is {last}")
        elif offset > end:
            problems.append(f"partition {partition}: {offset} is next, but the topic ends at {end}: it was shortened")
        elif offset < earliest:
            gone += earliest - offset
            offsets[partition] = earliest
            if missed == "stop":
                problems.append(f"partition {partition}: {offset} is next, but the earliest is {earliest}")
    if problems:
        raise OffsetsLost(
            f"starting {app}: {topic} has no longer what it should judge next",
            problems=problems,
            hint=f"`lozenge offsets {app} --earliest` (or --latest, --at, --to) goes on there, and `lozenge coverage "
            f'{app}` keeps the gap; missed = "skip" in [tool.lozenge] leaves out what retention took',
        )
    if gone:
        logger().error(f"{app}: retention took {gone} events before it judged them; it goes on behind them")
    return offsets


def too_far(
    offsets: Mapping[int, int], ends: Mapping[int, int], declaration: Manifest, known: CoverageSegment | None
) -> bool:
    """Whether a job is to begin with the newest events and leave to later what it would need several batches for.

    Not at its first start, of which no coverage would remember anything to fill, nor where somebody has moved it.
    """
    if declaration.backlog == "oldest-first" or known is None or known.what == MOVED:
        return False
    return sum(ends[p] - offset for p, offset in offsets.items()) > declaration.max_batch


def decided(positions: Positions, known: CoverageSegment | None) -> dict[int, int]:
    """How far a detector has come; where the group's offsets are gone, no further than `known` wrote down."""
    if known is None:
        return dict(positions.offsets)
    return {p: known.since.get(p, o) if p in positions.missing else o for p, o in positions.offsets.items()}


def refuse_another(app: str, topic: str, known: CoverageSegment | None, now: str) -> None:
    """Raises OffsetsLost if the topic was made anew since the newest line `known`; `now` tells which it is."""
    if known is not None and known.input not in ("", now):
        raise OffsetsLost(
            f"starting {app}: {topic} was made anew since {app} judged it last",
            problems=["its offsets are those of a topic that is gone"],
            hint=f"`lozenge offsets {app} --earliest` judges all of the new one, --latest what comes from now on",
        )
