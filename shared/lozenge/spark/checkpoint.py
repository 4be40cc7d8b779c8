"""A Spark checkpoint as this project uses it: it belongs to one release and can always be thrown away."""

import json
import shutil
import uuid
from pathlib import Path


class Checkpoint:
    """The folder of one query's checkpoint, with an id of its own in a file next to Spark's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self._id_file = self.folder.with_suffix(".id")

    @property
    def id(self) -> str:
        """The checkpoint's id; changes with every `renew`."""
        return self._id_file.read_text("utf-8") if self._id_file.is_file() and self.folder.is_dir() else ""

    def renew(self) -> None:
        """Throws the checkpoint away and begins an empty one under a new id."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self._id_file.write_text(uuid.uuid4().hex[:12], "utf-8")

    def planned(self, batch: int) -> dict[int, int] | None:
        """End offsets by partition that Spark wrote down before it ran `batch`; None if it did not."""
        file = self.folder / "offsets" / str(batch)
        if not file.is_file():
            return None
        ends: dict[int, int] = {}
        for line in file.read_text("utf-8").splitlines()[2:]:
            for offsets in json.loads(line).values() if line.startswith("{") else ():
                ends.update({int(p): o for p, o in offsets.items()})
        return ends

    def forget(self, batch: int) -> None:
        """Takes back the plan of a batch that did not run, so that Spark plans it anew."""
        for name in (str(batch), f".{batch}.crc"):
            (self.folder / "offsets" / name).unlink(missing_ok=True)

    def back_to(self, batch: int) -> None:
        """Forgets every batch behind `batch`, planned or done: Spark goes on from what it had counted then."""
        for folder in ("offsets", "commits"):
            for file in (self.folder / folder).glob("[0-9]*"):
                if int(file.name) > batch:
                    file.unlink()

    def last_planned(self) -> int:
        """The newest batch that Spark has planned; -1 for none."""
        folder = self.folder / "offsets"
        names = [p.name for p in folder.iterdir()] if folder.is_dir() else []
        return max((int(name) for name in names if name.isdigit()), default=-1)
