"""A peer: PyFlink, in an environment of its own, with a cluster inside its process."""

import os
from pathlib import Path

from tests.bench.harness.system import Guarantees, Start, System
from tests.bench.systems.environments import python
from tests.bench.systems.jars import Jar

PROGRAM = Path(__file__).with_name("programs") / "flink.py"
CONNECTOR = Jar(
    "org.apache.flink",
    "flink-sql-connector-kafka",
    "5.0.0-2.2",
    "5605c691d11a501382c383fecba37a7a552467da5ab7ba904ef5d6f3d62c5616",
)


def command(start: Start) -> list[str]:
    """The process; the interpreters inside its JVM know nothing of virtual environments: variables name it."""
    interpreter, file = python("flink"), start.file()
    packages = next(interpreter.parents[1].glob("lib/python*/site-packages"))
    variables = [f"PYTHONPATH={packages}{os.pathsep}{PROGRAM.parent}", f"START={file}", f"FLINK_LOG_DIR={start.folder}"]
    return ["env", *variables, str(interpreter), str(PROGRAM), str(file), str(CONNECTOR.path())]


SYSTEMS = (
    System(
        "PyFlink",
        "peer",
        Guarantees(
            "at least once", "every 10 s, with a checkpoint", "read uncommitted", state="RocksDB and checkpoints"
        ),
        command,
    ),
)
