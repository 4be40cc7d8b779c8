"""Where upstream begins: its group's offsets are the only truth about that, and outlive each of its processes."""

from lozenge.apps import UPSTREAM
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import bounds
from tests.bench.harness.platform import TOPICS
from tests.integration.harness import move
from tests.streams import RAW_ISO, RAW_JSON


def start_at_earliest(kafka: KafkaSettings) -> None:
    """The next upstream begins at the earliest raw record that is there, whatever one before it has read.

    It would rightly refuse to skip what was deleted after its offsets. Their metadata goes too: the mark
    of Real-Time Mode, after which upstream would look for output of its own and not write that again.
    """
    for topic in (TOPICS.prefixed(RAW_JSON), TOPICS.prefixed(RAW_ISO)):
        earliest = {number: low for number, (low, _) in bounds(kafka, topic, TOPICS.partitions).items()}
        move(kafka, UPSTREAM, earliest, topic)
