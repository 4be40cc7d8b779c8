"""A Spark checkpoint as this project uses it: it belongs to one release and may be discarded at any time.

This module alone knows the files of a checkpoint: `offsets/N` is written before batch N runs, `commits/N` after it. A
file of offsets has a line with its version, a line of metadata, and for each source a line of JSON, or "-" if the
source has no offset yet.
"""

import json
import shutil
import uuid
from collections.abc import Iterable
from pathlib import Path

from lozenge.errors import ToolchainError

Offsets = dict[str, dict[str, int]]
"""The next offset to read, by topic and partition, in the form that Spark writes and takes."""
_VERSION = "v1"
_NO_OFFSET = "-"


def merged(sources: Iterable[Offsets]) -> Offsets:
    """The offsets of several sources, which share no partition, as one."""
    offsets: Offsets = {}
    for source in sources:
        for topic, partitions in source.items():
            offsets.setdefault(topic, {}).update(partitions)
    return offsets


def planned_ends(folder: Path, batch: int) -> Offsets | None:
    """The end offsets that Spark wrote to the checkpoint in `folder` before it ran `batch`; None if it did not."""
    file = folder / "offsets" / str(batch)
    if not file.is_file():
        return None
    version, _metadata, *sources = file.read_text("utf-8").splitlines()
    if version != _VERSION:
        raise ToolchainError(
            f"reading {file}: Spark's offset log has the format {version}, and {_VERSION} is known",
            hint="run `make spark-contract` with this version of Spark",
        )
    return merged(json.loads(source) for source in sources if source != _NO_OFFSET)


class Checkpoint:
    """The folder of one query's checkpoint, with an id in a file next to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self._id_file = self.folder.with_suffix(".id")

    @property
    def id(self) -> str:
        """The checkpoint's id; changes with every `renew`."""
        return self._id_file.read_text("utf-8") if self._id_file.is_file() and self.folder.is_dir() else ""

    def renew(self) -> None:
        """Discards the checkpoint and begins an empty one under a new id."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self._id_file.write_text(uuid.uuid4().hex[:12], "utf-8")

    def planned(self, batch: int) -> dict[int, int] | None:
        """End offsets by partition of the one topic that is read, as Spark planned `batch`; None if it did not."""
        topics = planned_ends(self.folder, batch)
        if topics is None:
            return None
        return {int(partition): end for ends in topics.values() for partition, end in ends.items()}

    def forget(self, batch: int) -> None:
        """Removes the plan of a batch that did not run, so that Spark plans it again."""
        for name in (str(batch), f".{batch}.crc"):
            (self.folder / "offsets" / name).unlink(missing_ok=True)

    def back_to(self, batch: int) -> None:
        """Forgets every batch after `batch`, planned or done: Spark resumes with the state that it had then."""
        for folder in ("offsets", "commits"):
            for file in (self.folder / folder).glob("[0-9]*"):
                if int(file.name) > batch:
                    file.unlink()

    def last_planned(self) -> int:
        """The newest batch that Spark has planned; -1 for none."""
        folder = self.folder / "offsets"
        names = [p.name for p in folder.iterdir()] if folder.is_dir() else []
        return max((int(name) for name in names if name.isdigit()), default=-1)
