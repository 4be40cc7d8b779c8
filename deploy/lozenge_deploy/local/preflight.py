"""Checks of what Lozenge needs on a machine."""

import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lozenge.errors import LozengeError
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge.toolchain import cache_path, jars
from lozenge.toolchain.cds import spark_archive
from lozenge.toolchain.java import find_java

LEAST_DISK = 2 * 1024**3
BROKER_SECONDS = 3.0


@dataclass(frozen=True)
class Check:
    """One check: what was found, whether it is sufficient, and what to do if not."""

    what: str
    ok: bool
    found: str
    fix: str = ""


def run_checks() -> Iterator[Check]:
    """Every check, in the order in which a person would fix them; raises nothing."""
    version = ".".join(map(str, sys.version_info[:3]))
    yield Check("Python", sys.version_info >= (3, 11), version, "install Python 3.11 or newer")
    yield _checked("Java", _java)
    yield _checked("JVM jars", lambda: f"{len(jars.jars('connector'))} files")
    yield _checked("settings", lambda: f"broker at {KafkaSettings.load().bootstrap}")
    yield _checked("broker", lambda: f"{len(partitions(KafkaSettings.load(), timeout=BROKER_SECONDS))} topics")
    archive = spark_archive().file()
    yield Check("class-data archive", True, str(archive) if archive else "none: every start takes longer")
    free = shutil.disk_usage(cache_path()).free
    fix = f"free some space on the disk of {cache_path()}"
    yield Check("disk", free >= LEAST_DISK, f"{free / 1024**3:.1f} GB free", fix)


def _java() -> str:
    java = find_java()
    return f"{java.version} from {java.origin}: {java.home}"


def _checked(what: str, find: Callable[[], str]) -> Check:
    try:
        return Check(what, True, find())
    except LozengeError as error:
        return Check(what, False, error.message, error.hint)
