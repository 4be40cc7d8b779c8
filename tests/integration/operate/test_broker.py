"""The embedded broker: starts, stops, survives kills and keeps its topics; clients outlive its absence."""

import contextlib
import datetime as dt
import ipaddress
import os
import signal
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from kafka import KafkaConsumer
from pydantic import SecretStr
from pyspark.sql import SparkSession

from lozenge.contracts.record import Record
from lozenge.contracts.topics import Topic
from lozenge.errors import BrokerUnavailable, UsageError
from lozenge.kafka.group_offsets import ConsumerGroup
from lozenge.kafka.settings import SILENT, KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.kafka.topic_reader import open_transactions, read
from lozenge.kafka.writers import TransactionalWriter
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge_deploy.control.leader_election import Leadership, LeaseTiming
from lozenge_deploy.control.records import DeploymentStatus, Lease
from lozenge_deploy.local.embedded_broker import EmbeddedBroker, Proxied, SecureListener, _answers
from lozenge_deploy.local.ports import free_port
from lozenge_deploy.observe.log_reader import LogReader
from lozenge_deploy.supervision.log_shipper import Shipper
from tests.integration.harness import wait_for
from tests.streams import every_topic

PROXIED, PROXY = free_port(0), 1


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """A broker that a test may kill: not the one all tests share."""
    folder = tmp_path_factory.mktemp("own")
    listener = SecureListener(_self_signed(folder), "lozenge", 'se"cret')
    with EmbeddedBroker(folder / "data", secure=listener, proxied=Proxied(PROXIED, PROXY)) as broker:
        yield broker


def test_a_client_behind_a_proxy_gets_the_address_of_the_proxy(own: EmbeddedBroker) -> None:
    for address, advertised in ((own.bootstrap, own.bootstrap), (f"127.0.0.1:{PROXIED}", f"127.0.0.1:{PROXY}")):
        [broker] = AdminClient({"bootstrap.servers": address}).list_topics(timeout=30).brokers.values()
        assert f"{broker.host}:{broker.port}" == advertised


def test_records_survive_a_stop_and_a_kill_and_clients_continue(own: EmbeddedBroker, tmp_path: Path) -> None:
    _create(own.bootstrap, "written")
    before, kafka = own.bootstrap, KafkaSettings(bootstrap=own.bootstrap)
    ensure_topics(kafka, every_topic(kafka.topics))
    writer, group = TransactionalWriter(kafka, "writer"), ConsumerGroup(kafka, "writer", "written", 1)
    writer.fence()
    log, shipper = tmp_path / "job.log", Shipper(kafka)
    log.write_text("at first\n")
    shipper.follow(log, "spotter", "g1", "1.0.0")
    for number, end in enumerate((own.stop, own.kill, None)):
        records = [Record("written", 0, b"key", b"%d" % number)]
        writer.commit(records, group, {0: number}, CommitMetadata(1, "-", number))
        _ship_until(shipper, lambda: _shipped(kafka))
        if end is not None:
            end()
            assert own.pid is None
            with log.open("a") as file:
                file.write(f"without a broker {number}\n")
            shipper.ship()
            own.start()
            assert own.bootstrap == before, "clients must find it again"
    assert group.read().offsets == {0: 2}
    assert [message.value() for message in read(kafka, "written", {0: 0})] == [b"0", b"1", b"2"]
    shipper.unfollow(log)
    _ship_until(shipper, lambda: not shipper.following())
    assert _shipped(kafka) == ["at first", "without a broker 0", "without a broker 1"]


def test_no_transaction_hangs_after_a_kill_and_each_is_whole(own: EmbeddedBroker) -> None:
    topic, kafka, begun = "killed-while-committing", KafkaSettings(bootstrap=own.bootstrap), threading.Barrier(5)
    ensure_topics(kafka, [Topic(topic, 8)])

    def commit_until_killed(writer: int) -> None:
        producer = Producer(kafka.client(transactional_id=f"{topic}-{writer}", linger_ms=0), logger=SILENT)
        producer.init_transactions(30)
        for number in count():
            producer.begin_transaction()
            for partition in range(8):
                producer.produce(topic, f"{writer} {number}".encode(), partition=partition)
            producer.commit_transaction(5)
            if number == 10:
                begun.wait(60)

    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(commit_until_killed, writer) for writer in range(4)]
        begun.wait(60)
        own.kill()
        assert all(isinstance(writer.exception(60), KafkaException) for writer in writers)
    own.start()
    for writer in range(4):
        TransactionalWriter(kafka, f"{topic}-{writer}").fence()
    wait_for(lambda: not open_transactions(kafka, topic, range(8)), "the end of every transaction")
    found = Counter(message.value() for message in read(kafka, topic, dict.fromkeys(range(8), 0)))
    assert len(found) >= 4 * 11
    assert set(found.values()) == {8}


def test_a_producer_continues_after_the_broker_was_stopped_for_longer_than_its_session(own: EmbeddedBroker) -> None:
    """The broker then says that there is none, and a client that believes it must find it again."""
    _create(own.bootstrap, "frozen")
    producer = Producer(KafkaSettings(bootstrap=own.bootstrap).client(enable_idempotence=True))
    with _suspended(own):
        for number in range(100):
            producer.produce("frozen", b"%d" % number)
            producer.poll(0.1)
    assert producer.flush(60) == 0
    assert _count(own.bootstrap, "frozen") == 100


def test_a_leader_is_elected_again_after_the_broker_was_suspended(own: EmbeddedBroker) -> None:
    kafka = KafkaSettings(bootstrap=own.bootstrap)
    ensure_topics(kafka, kafka.topics.control.contracts())
    one = Leadership(kafka, Lease(agent="one", host="here", folder="/jobs"), LeaseTiming(renew=0.2, call=1.0))
    wait_for(lambda: _is_leader(one), "its leadership")
    with _suspended(own), pytest.raises(BrokerUnavailable):
        wait_for(lambda: not one.tick(), "the loss of its leadership")
    wait_for(lambda: _is_leader(one), "its leadership again")
    one.write([(kafka.topics.control.status, "spotter", DeploymentStatus(detector="spotter", reason="again"))])
    one.resign()
    one.close()


def test_a_topic_that_does_not_exist_is_an_error(own: EmbeddedBroker) -> None:
    with pytest.raises(KafkaException, match="_UNKNOWN_PARTITION"):
        _count(own.bootstrap, "misspelt")


def test_a_secure_listener_serves_python_and_spark(own: EmbeddedBroker, spark: SparkSession) -> None:
    secure = KafkaSettings(
        bootstrap=own.secure_bootstrap,
        security="SASL_SSL",
        username="lozenge",
        password=SecretStr('se"cret'),
        ca=own.data.parent / "authority.pem",
    )
    _create(own.bootstrap, "secured")
    writer = spark.createDataFrame([(b"k", b"v")], "key binary, value binary").write.format("kafka")
    writer.options(**secure.spark()).option("topic", "secured").save()
    reader = spark.read.format("kafka").options(**secure.spark()).option("subscribe", "secured")
    assert reader.load().count() == 1
    producer = Producer(secure.client())
    producer.produce("secured", b"w", b"k")
    assert producer.flush(30) == 0
    consumer = Consumer(secure.client(group_id="secured", auto_offset_reset="earliest"))
    consumer.subscribe(["secured"])
    with contextlib.closing(consumer):
        assert [message.value() for message in consumer.consume(2, 30)] == [b"v", b"w"]
    # kafka-python 3.0 at times never fetches: what is promised is that such a client is served, not each one at once
    assert any(_read_by_kafka_python(secure, "secured", 2) == [b"v", b"w"] for _ in range(3))


def test_a_secure_listener_refuses_a_wrong_password(own: EmbeddedBroker) -> None:
    secure = KafkaSettings(
        bootstrap=own.secure_bootstrap,
        security="SASL_SSL",
        username="lozenge",
        password=SecretStr("wrong"),
        ca=own.data.parent / "authority.pem",
    )
    with pytest.raises(KafkaException):
        AdminClient(secure.client(log_level=0)).list_topics(timeout=3)


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port} on 127.0.0.1 is in use"):
            EmbeddedBroker(tmp_path, port).start()


def test_a_data_folder_in_use_is_refused(own: EmbeddedBroker) -> None:
    with pytest.raises(UsageError, match="another one runs on"):
        EmbeddedBroker(own.data).start()
    assert _answers(own.bootstrap), "the first one must not notice"


def test_a_damaged_data_folder_is_refused_with_the_words_of_the_broker_and_no_stack_frames(tmp_path: Path) -> None:
    tmp_path.joinpath("topics").mkdir()
    tmp_path.joinpath("topics", "meta.properties").write_text("version=1\n")
    with pytest.raises(BrokerUnavailable, match="exited with code") as caught:
        EmbeddedBroker(tmp_path).start()
    assert "meta.properties" in str(caught.value)
    assert "\tat " not in str(caught.value)
    assert "broker.log" in caught.value.hint


@contextlib.contextmanager
def _suspended(broker: EmbeddedBroker) -> Iterator[None]:
    """Its process does nothing within the block."""
    assert broker.pid is not None
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(broker.pid, signal.SIGCONT)


def _is_leader(one: Leadership) -> bool:
    """Whether it is the leader. An agent asks again after an error of the broker."""
    with contextlib.suppress(BrokerUnavailable):
        return one.tick()
    return False


def _ship_until(shipper: Shipper, condition: Callable[[], object]) -> None:
    def shipping() -> object:
        shipper.ship()
        return condition()

    wait_for(shipping, "the lines to be shipped")


def _shipped(kafka: KafkaSettings) -> list[str]:
    """The lines of the log in their topic; after an outage one may be there twice."""
    return list(dict.fromkeys(line["event"] for line in LogReader(kafka, "spotter").latest(100)[0]))


def _create(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(topic, 1)])[topic].result(30)


def _count(bootstrap: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g"})
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
    finally:
        consumer.close()
    return int(high - low)


def _read_by_kafka_python(kafka: KafkaSettings, topic: str, records: int) -> list[bytes]:
    """Values of the topic's first records, as many as came within 30 s."""
    reader = KafkaConsumer(topic, auto_offset_reset="earliest", consumer_timeout_ms=30_000, **kafka.kafka_python())
    with contextlib.closing(reader):
        return [record.value for record in islice(reader, records)]


def _self_signed(folder: Path) -> Path:
    """A key with a certificate for 127.0.0.1 in one PEM file, and `authority.pem`, which vouches for it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "lozenge test")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    folder.joinpath("authority.pem").write_bytes(pem)
    keystore = folder / "server.pem"
    keystore.write_bytes(private + pem)
    return keystore
