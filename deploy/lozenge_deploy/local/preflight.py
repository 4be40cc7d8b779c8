"""What Lozenge needs of a machine, looked at one by one."""

import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lozenge.errors import LozengeError
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge.toolchain import cache_path, cds, jars
from lozenge.toolchain.java import find_java

LEAST_DISK = 2 * 1024**3
BROKER_SECONDS = 3.0


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: what was found, whether that will do, and else what to do."""

    what: str
    fit: bool
    found: str
    cure: str = ""


def examine() -> Iterator[Finding]:
    """Every finding, in the order in which a person would mend them; nothing here raises."""
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("Python", sys.version_info >= (3, 11), version, "install Python 3.11 or newer")
    yield _asked("Java", _java)
    yield _asked("JVM jars", lambda: f"{len(jars.jars('connector'))} files")
    yield _asked("settings", lambda: f"broker at {KafkaSettings.load().bootstrap}")
    yield _asked("broker", lambda: f"{len(partitions(KafkaSettings.load(), timeout=BROKER_SECONDS))} topics")
    archive = cds.archive()
    yield Finding("class-data archive", True, str(archive) if archive else "none: every start takes longer")
    free = shutil.disk_usage(cache_path()).free
    cure = f"free some space on the disk of {cache_path()}"
    yield Finding("disk", free >= LEAST_DISK, f"{free / 1024**3:.1f} GB free", cure)


def _java() -> str:
    java = find_java()
    return f"{java.version} from {java.origin}: {java.home}"


def _asked(what: str, ask: Callable[[], str]) -> Finding:
    try:
        return Finding(what, True, ask())
    except LozengeError as error:
        return Finding(what, False, error.message, error.hint)
