"""The peer of upstream: `Converter.java`, a Kafka Streams application, compiled and run from its source by a JDK."""

import os
import struct
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import retained
from lozenge.toolchain.jars import jars
from lozenge.toolchain.java import java_home
from tests.bench.systems.kafka_streams import STREAMS
from tests.integration.harness import ended_behind

SOURCE = Path(__file__).with_name("Converter.java")
TO = "streams-events"
PARTITIONS = 4


class Converter:
    """One instance of it, from AUTH-JSON to `TO`; `entered` counts the records that it was given to process."""

    def __init__(self, process: "subprocess.Popen[bytes]", counts: Path) -> None:
        self.process, self._counts = process, counts

    @property
    def entered(self) -> int:
        """Also those of transactions that were aborted, and when it was killed."""
        with suppress(FileNotFoundError, struct.error):
            (count,) = struct.unpack(">q", self._counts.read_bytes())
            return int(count)
        return 0


@contextmanager
def converter(kafka: KafkaSettings, raw: str, folder: Path) -> Iterator[Converter]:
    """A running instance; skips the test where there is no JDK."""
    java = java_home() / "bin" / "java"
    if not java.with_name("javac").exists():
        pytest.skip(f"Kafka Streams needs a JDK to be compiled; {java_home()} is a JRE")
    path = os.pathsep.join(map(str, [STREAMS.path(), *jars("broker")]))
    command = [str(java), "-Xmx512m", "-cp", path, str(SOURCE), kafka.bootstrap, raw, TO, str(folder / "state")]
    with (folder / "stderr").open("ab") as log:
        process = subprocess.Popen([*command, str(folder / "counts")], stdout=log, stderr=log, process_group=0)
    with ended_behind(process, 60):
        yield Converter(process, folder / "counts")


def ids(kafka: KafkaSettings) -> Counter[str | bytes | None]:
    """How often a reader of committed records finds each id in what came out."""
    return Counter(dict(message.headers() or [])["ce_id"] for message in retained(kafka, TO, PARTITIONS))
