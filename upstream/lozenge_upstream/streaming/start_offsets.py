"""The raw offsets at which upstream resumes, and a refusal where raw records would be skipped silently.

A pure decision over what the group has committed, what the topic still has, and what the coverage topic remembers.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from lozenge.errors import OffsetsLost
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.protocol.coverage import CoverageSegment


@dataclass(frozen=True)
class CommittedRaw:
    """What the group has committed on one raw partition, and what the partition has.

    `offset` is below 0 where nothing was ever committed, or it has expired. `metadata` is None where another tool has
    committed. The partition has offsets from `earliest` to before `end`.
    """

    offset: int
    metadata: CommitMetadata | None
    earliest: int
    end: int


def start_offsets(
    app: str, topic: str, committed: Mapping[int, CommittedRaw], known: CoverageSegment | None, input_id: str
) -> dict[int, int]:
    """The offset at which `app` resumes on each partition of `topic`; its earliest where it never read it.

    `known` is the newest coverage segment of the topic; `input_id` is the id of the present topic. Raises OffsetsLost
    with every partition that lacks the records to read next.
    """
    if known is not None and known.input_id not in ("", input_id):
        raise _lost(
            app, topic, ["the topic was deleted and created again; the committed offsets are those of the old one"]
        )
    problems = []
    for partition, at in sorted(committed.items()):
        if at.offset < 0 and known is not None and partition in known.since:
            last = known.since[partition]
            problems.append(f"partition {partition}: the committed offset has expired; the last known one is {last}")
        elif at.offset > at.end:
            problems.append(
                f"partition {partition}: {at.offset} is next, but the topic ends at {at.end}: it was shortened"
            )
        elif 0 <= at.offset < at.earliest:
            gone = f"{at.earliest - at.offset} records {at.offset}-{at.earliest - 1}"
            problems.append(f"partition {partition}: {gone} were deleted before they were read")
    if problems:
        raise _lost(app, topic, problems)
    return {partition: at.offset if at.offset >= 0 else at.earliest for partition, at in committed.items()}


def moved_by_others(committed: Mapping[int, CommittedRaw], known: CoverageSegment | None) -> list[int]:
    """The partitions whose offset another tool has committed since upstream last ran."""
    if known is None:
        return []
    return [p for p, at in sorted(committed.items()) if at.offset >= 0 and at.metadata is None and p in known.since]


def _lost(app: str, topic: str, problems: list[str]) -> OffsetsLost:
    return OffsetsLost(
        f"starting {app}: {topic} no longer has the raw records to read next",
        problems=problems,
        hint=f"`lozenge offsets {app} --earliest` accepts that loss and resumes with what is there (or --latest, "
        f"--at, --to); `lozenge coverage {app}` keeps the gap",
    )
