"""The JVM of the embedded broker: its command line, its class-data archive, and the data folder that it expects."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from lozenge.errors import BrokerUnavailable
from lozenge.toolchain import cache_path
from lozenge.toolchain.cds import ClassDataArchive
from lozenge.toolchain.jars import CHECKSUMS, jars
from lozenge.toolchain.jars import folder as jars_folder
from lozenge.toolchain.java import java_home
from lozenge_deploy.local.ports import LOOPBACK
from lozenge_deploy.releases.uv import made_once

SETTINGS = Path(__file__).with_name("broker.properties")
_LOGGING = Path(__file__).with_name("broker.log4j2.properties")
_CLUSTER_ID = "bG96ZW5nZS1sb3plbmdlLQ"  # 16 bytes in URL-safe base64; any constant suffices for one node
_UNUSED_PORTS = 1, 2
"""Where the node would listen in whose name a folder is formatted; a format needs them and keeps neither."""


def java_command(main: str, *arguments: str, jvm: Iterable[str] = ()) -> list[str]:
    """The command that runs a class of Kafka's under the options `jvm`, with the class-data archive if there is one."""
    class_path = jars("broker")
    return [
        str(java_home() / "bin" / "java"),
        *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *archive(class_path).options(), *jvm),
        *("-cp", os.pathsep.join(str(jar) for jar in class_path)),
        main,
        *arguments,
    ]


def logging_options(log: Path) -> list[str]:
    """The options of a JVM that logs into the file `log`."""
    return [f"-Dlog4j2.configurationFile={_LOGGING}", f"-Dlozenge.broker.log={log}"]


def archive(class_path: Sequence[Path]) -> ClassDataArchive:
    """The class-data archive of the broker, whose jars are `class_path`."""
    return ClassDataArchive("broker", jars_folder(), class_path, "lozenge_deploy.local.broker_training")


def format_folder(properties: Path, data: Path, user: Iterable[str] = ()) -> None:
    """Formats what `properties` name, for a node with this `user`; raises BrokerUnavailable, which names `data`."""
    command = ["format", "--config", str(properties), "--cluster-id", _CLUSTER_ID, *user]
    run = subprocess.run(java_command("kafka.tools.StorageTool", *command), capture_output=True, text=True)
    if run.returncode:
        raise BrokerUnavailable(
            f"preparing {data} for the broker: {run.stderr.strip() or run.stdout.strip()}",
            hint="choose another data folder, or delete this one if nothing in it is needed",
        )


def copy_formatted(data: Path) -> None:
    """Makes `data/topics` of a node without users, complete or not at all; a format would start a JVM for it."""
    made_of = CHECKSUMS.read_bytes() + SETTINGS.read_bytes()
    kept = cache_path("broker", f"formatted-{hashlib.sha256(made_of).hexdigest()[:12]}")
    stage = data / ".formatted"
    shutil.rmtree(stage, ignore_errors=True)
    shutil.copytree(made_once(kept, _make_formatted) / "topics", stage)
    stage.rename(data / "topics")


def _make_formatted(folder: Path) -> None:
    folder.mkdir()
    port, controller = (f"{LOOPBACK}:{port}" for port in _UNUSED_PORTS)
    lines = [
        f"log.dirs={folder / 'topics'}",
        f"controller.quorum.voters=1@{controller}",
        f"listeners=PLAINTEXT://{port},CONTROLLER://{controller}",
    ]
    properties = folder / "server.properties"
    properties.write_text(SETTINGS.read_text() + "\n".join(lines) + "\n")
    format_folder(properties, folder)
