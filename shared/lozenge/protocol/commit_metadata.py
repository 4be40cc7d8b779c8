"""What is committed next to an offset: who committed it, with which batch, and whether output is ahead of it.

Offsets alone would not do. A batch without data, in which windows close, ends at the offsets of the batch before it.
The text is `generation/checkpoint/batch`, followed by `/ahead` where output is ahead of the offsets, and by the moment
since when where that is known. So `kafka-consumer-groups --describe` shows it as people can read it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

NO_CHECKPOINT = "-"


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """Metadata of one commit. Upstream has neither generation nor batch: those stay 0 and -1.

    With `output_ahead`, records of input after the offset may have been written already, as in Real-Time Mode.
    None of them was written before `ahead_since`, if that is known.
    """

    generation: int = 0
    checkpoint: str = NO_CHECKPOINT
    batch: int = -1
    output_ahead: bool = False
    ahead_since: datetime | None = None

    def encode(self) -> str:
        """The metadata as Kafka keeps it."""
        fields = [str(self.generation), self.checkpoint, str(self.batch)]
        fields += ["ahead"] if self.output_ahead else []
        fields += [self.ahead_since.isoformat()] if self.output_ahead and self.ahead_since else []
        return "/".join(fields)

    @classmethod
    def decode(cls, text: str | None) -> "CommitMetadata | None":
        """The metadata in `text`; None if another tool committed, or nobody."""
        fields = (text or "").rstrip("\0").split("/")  # librdkafka sends its string's closing zero along
        try:
            match fields:
                case [generation, checkpoint, batch]:
                    return cls(int(generation), checkpoint, int(batch))
                case [generation, checkpoint, batch, "ahead"]:
                    return cls(int(generation), checkpoint, int(batch), output_ahead=True)
                case [generation, checkpoint, batch, "ahead", since]:
                    return cls(int(generation), checkpoint, int(batch), True, datetime.fromisoformat(since))
        except ValueError:
            pass
        return None

    @classmethod
    def newest(cls, texts: Iterable[str | None]) -> "CommitMetadata | None":
        """The metadata of the last commit among those of all partitions; None if there is none of ours."""
        found = [metadata for text in texts if (metadata := cls.decode(text)) is not None]
        return max(found, key=lambda metadata: (metadata.generation, metadata.batch), default=None)
