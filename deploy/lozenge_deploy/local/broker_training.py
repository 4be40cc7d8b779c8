"""`python -m lozenge_deploy.local.broker_training`: makes the embedded broker's class-data archive, unless it is there.

With JVM_OPTION FOLDER it is the training: a broker that does a little of what brokers do, under the option that writes
the archive.
"""

import sys
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from lozenge.errors import LozengeError
from lozenge.toolchain.jars import jars
from lozenge_deploy.local.broker_jvm import archive
from lozenge_deploy.local.embedded_broker import EmbeddedBroker

STOP_SECONDS = 120
"""How long the broker may take to stop, which includes writing the archive."""


def train(jvm_option: str, folder: Path) -> None:
    """Runs a broker with one topic, one transaction and one reader, and stops it."""
    broker = EmbeddedBroker(folder / "data", jvm_options=[jvm_option])
    broker.start()
    _use(broker.bootstrap)
    broker.stop(timeout=STOP_SECONDS)


def _use(bootstrap: str) -> None:
    client: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap, "log_level": 0}
    admin = AdminClient(client)
    admin.create_topics([NewTopic("training", 1, config={"cleanup.policy": "compact"})])["training"].result(30)
    consumer = Consumer(client | {"group.id": "training", "enable.auto.commit": False, "auto.offset.reset": "earliest"})
    producer = Producer(client | {"transactional.id": "training"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("training", b"value", b"key")
    producer.send_offsets_to_transaction([TopicPartition("training", 0, 0)], consumer.consumer_group_metadata(), 30)
    producer.commit_transaction(30)
    consumer.subscribe(["training"])
    consumer.poll(30)
    consumer.close()
    admin.list_consumer_groups().result(30)


def main(arguments: list[str]) -> int:
    """Makes the archive or runs the training; the exit code."""
    try:
        if arguments:
            train(arguments[0], Path(arguments[1]))
        else:
            made = archive(jars("broker")).make()
            print(f"class-data archive of the broker: {made or 'could not be made; every start takes longer'}")
    except LozengeError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
