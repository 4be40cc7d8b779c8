"""Reads notifications and proves by `seq` that it missed none.

python examples/consume_notifications.py 127.0.0.1:9092 --from-beginning
"""

import argparse
import sys

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from lozenge.contracts.avro import Codec
from lozenge.contracts.schemas import newest
from lozenge.errors import LozengeError
from lozenge.kafka.schema_topic import learn
from lozenge.kafka.settings import KafkaSettings

QUIET_SECONDS = 10.0


def arguments() -> argparse.Namespace:
    """What the caller wants; a wrong argument ends the program with exit code 2."""
    parser = argparse.ArgumentParser(
        description="Reads notifications and proves by `seq` that it missed none.",
        epilog=f"Without --follow it ends {QUIET_SECONDS:.0f} s after the last record. Exit code 1: it found a gap.",
    )
    parser.add_argument("broker", help="host and port, such as 127.0.0.1:9092")
    parser.add_argument("--from-beginning", action="store_true", help="every retained record, not only new ones")
    parser.add_argument("--follow", action="store_true", help="wait for further records until Ctrl-C")
    return parser.parse_args()


def consume(broker: str, from_beginning: bool, follow: bool) -> int:
    """Prints a line for each notification and each gap; the number of gaps."""
    kafka = KafkaSettings.local(broker)
    codec = Codec.of("notification")
    for schema in learn(kafka, newest("notification")):  # a schema registry may have given other ids
        codec.learn(schema)
    consumer = KafkaConsumer(
        kafka.topics.notifications,
        bootstrap_servers=kafka.bootstrap,
        isolation_level="read_committed",  # Kafka's default, read_uncommitted, also returns aborted records
        auto_offset_reset="earliest" if from_beginning else "latest",
        consumer_timeout_ms=float("inf") if follow else QUIET_SECONDS * 1000,
    )
    expected: dict[int, int] = {}
    gaps = 0
    for record in consumer:
        notification = codec.decode(record.value)
        seq = notification["seq"]
        if record.partition not in expected:  # the first seq is 0, unless retention has deleted the oldest
            partition = TopicPartition(record.topic, record.partition)
            whole = from_beginning and not consumer.beginning_offsets([partition])[partition]
            expected[record.partition] = 0 if whole else seq
        if seq != expected[record.partition]:
            gaps += 1
            print(f"GAP partition {record.partition}: expected seq {expected[record.partition]}, got {seq}")
        expected[record.partition] = seq + 1
        print(record.partition, seq, notification["severity"], notification["title"], notification["case_id"])
    return gaps


def main() -> int:
    """The exit code: 0 done, 1 a gap or an error, 2 a wrong argument, 130 Ctrl-C."""
    given = arguments()
    try:
        return 1 if consume(given.broker, given.from_beginning, given.follow) else 0
    except (KafkaError, LozengeError) as error:
        print(f"reading notifications from {given.broker}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
