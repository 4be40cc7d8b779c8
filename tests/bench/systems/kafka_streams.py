"""The peer: Kafka Streams in Java, `programs/Streams.java`, which a JDK compiles once."""

import hashlib
import os
import subprocess
from functools import partial
from pathlib import Path

from lozenge.toolchain import cache_path
from lozenge.toolchain.jars import jars
from lozenge.toolchain.java import java_home
from lozenge_deploy.releases.uv import made_once
from tests.bench.harness.system import OF_A_JOB, Guarantees, Start, System, Unavailable
from tests.bench.systems.jars import Jar

PROGRAM = Path(__file__).with_name("programs") / "Streams.java"
STREAMS = Jar(
    "org.apache.kafka",
    "kafka-streams",
    "4.3.1",
    "bd73f3805e116f711e8456ee89a8a5b43ff5dcf5a5bb865afae29deae89e7c4b",
)
NEEDS = (
    Jar(
        "org.rocksdb",
        "rocksdbjni",
        "10.1.3",
        "e7f925287d9fe2574fb7c7a86f7facaa9b8ab602a2eed0e598bf633528121498",
    ),
    Jar(
        "org.apache.avro",
        "avro",
        "1.12.1",
        "72600f057bfbe2efe35fa55433e7756d45667dc938934be38a6e2be368aca237",
    ),
)
"""What it needs in addition to the broker's jars, which have all else."""


STATE = "RocksDB and a changelog topic"


def command(start: Start, guarantee: str) -> list[str]:
    """The process; raises Unavailable without a JDK."""
    java = java_home() / "bin" / "java"
    path = os.pathsep.join(map(str, [STREAMS.path(), *(jar.path() for jar in NEEDS), *jars("broker")]))
    path = f"{_compiled(java.with_name('javac'), path)}{os.pathsep}{path}"
    # the heap and the collector of our own jobs
    return [str(java), "-Xmx512m", "-XX:+UseSerialGC", "-cp", path, PROGRAM.stem, str(start.file()), guarantee]


def _compiled(javac: Path, path: str) -> Path:
    """The folder of its classes. Raises Unavailable where they are not there yet and cannot be made."""
    digest = hashlib.sha256(PROGRAM.read_bytes() + path.encode() + str(javac).encode()).hexdigest()[:12]

    def make(stage: Path) -> None:
        if not javac.exists():
            raise Unavailable(f"it needs a JDK to be compiled; there is no {javac}")
        run = subprocess.run([javac, "-cp", path, "-d", stage, PROGRAM], capture_output=True, text=True)
        if run.returncode:
            raise Unavailable(f"it does not compile: {run.stderr.strip()}")

    return made_once(cache_path("bench", f"streams-{digest}"), make)


SYSTEMS = (
    System(
        "Kafka Streams, at least once",
        "peer",
        Guarantees("at least once", "every 30 s, its default", "read uncommitted", state=STATE),
        partial(command, guarantee="at_least_once"),
        core=OF_A_JOB,
    ),
    System(
        "Kafka Streams, exactly once",
        "peer",
        Guarantees("exactly once", "every 100 ms, its default", state=STATE),
        partial(command, guarantee="exactly_once_v2"),
    ),
)
