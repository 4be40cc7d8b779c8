"""The pinned JVM jars: fetched once per user by the Ivy inside pyspark, checked by SHA-256.

`ivy.xml` names the versions and `jars.sha256` (in the format of `sha256sum`) what their files
contain. A jar whose content differs from that list is never handed out.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal

from lozenge.errors import ToolchainError
from lozenge.toolchain import cache_path, one_at_a_time, spark_home
from lozenge.toolchain.java import java_home

Conf = Literal["connector", "broker"]

MODULES = Path(__file__).with_name("ivy.xml")
CHECKSUMS = Path(__file__).with_name("jars.sha256")


def jars(conf: Conf) -> list[Path]:
    """The jars of one configuration, each with the pinned content; installs them if they are absent.

    Raises ToolchainError if a file was changed after its installation, or cannot be fetched.
    """
    if not folder().exists():
        install()
    names = [name for name in _pinned() if name.startswith(f"{conf}/")]
    if wrong := _wrong(folder(), names):
        raise ToolchainError(
            f"checking the installed jars: {wrong}",
            hint="run `make setup` (or `python -m lozenge.toolchain`), which replaces them",
        )
    return [folder() / name for name in names]


def folder() -> Path:
    """Where the jars of exactly this list are or will be."""
    return cache_path("jars", hashlib.sha256(CHECKSUMS.read_bytes()).hexdigest()[:12])


def install() -> Path:
    """Makes `folder()` complete and correct, with progress on stderr; cheap when it already is.

    Safe to run in several processes at once: one downloads, the others wait for it. The folder
    appears in one step, after every checksum was right. Raises ToolchainError, naming the file, on a
    wrong checksum and, with Ivy's words, if a download fails; what was already fetched is kept.
    """
    target = folder()
    with one_at_a_time("jars"):
        if target.exists() and not _wrong(target, list(_pinned())):
            return target
        stage = Path(tempfile.mkdtemp(prefix=".new-", dir=target.parent))
        try:
            fetch(stage, total=len(_pinned()))
            if wrong := _wrong(stage, list(_pinned())):
                shutil.rmtree(_ivy_cache())  # or the next attempt would find the same file in it
                raise ToolchainError(
                    f"fetching the JVM jars: {wrong}",
                    hint="the file was damaged on its way or replaced at its source: run `make setup` again, and "
                    "if it stays so, ask who runs your package mirror. It was not installed",
                )
            shutil.rmtree(target, ignore_errors=True)
            stage.rename(target)
        finally:
            shutil.rmtree(stage, ignore_errors=True)
        shutil.rmtree(_ivy_cache(), ignore_errors=True)
    return target


def lock() -> None:
    """Rewrites `jars.sha256` from what `ivy.xml` resolves to now (for the developer who changed it)."""
    with one_at_a_time("jars"), tempfile.TemporaryDirectory() as stage:
        fetch(Path(stage))
        files = sorted(Path(stage).glob("*/*.jar"))
        lines = [f"{_sha256(file)}  {file.relative_to(stage)}\n" for file in files]
    CHECKSUMS.write_text("".join(lines))


def fetch(into: Path, total: int | None = None) -> None:
    """Lets Ivy resolve and copy every jar to `into/<conf>/`, unchecked."""
    output: list[str] = []
    found = 0
    with subprocess.Popen(_ivy(into), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ivy:
        for line in ivy.stdout or ():
            output.append(line.strip())
            if line.lstrip().startswith("found "):
                found += 1
            elif line.startswith("downloading "):
                of = f"{found}/{total}" if total else str(found)
                print(f"JVM jars: {of} {line.split('/')[-1].removesuffix(' ...' + chr(10))}", file=sys.stderr)
    if ivy.returncode:
        errors = [line for line in output if "error" in line.lower() or "not found" in line.lower()]
        raise ToolchainError(
            "fetching the JVM jars: " + "\n  ".join((errors or output)[-6:]),
            hint="check the network and run it again. Behind a proxy set "
            'JAVA_TOOL_OPTIONS="-Dhttps.proxyHost=… -Dhttps.proxyPort=…"; for a company mirror set '
            "LOZENGE_IVY_SETTINGS to an ivysettings.xml",
        )


def _ivy(into: Path) -> list[str]:
    ivy_jar = next(spark_home().glob("jars/ivy-*.jar"))
    settings = os.environ.get("LOZENGE_IVY_SETTINGS")
    return [
        str(java_home() / "bin" / "java"),
        "-Divy.checksums=",  # Ivy's SHA-1 files double the number of requests; we check SHA-256 ourselves
        f"-Divy.default.ivy.user.dir={_ivy_cache()}",
        *("-jar", str(ivy_jar), "-ivy", str(MODULES), "-cache", str(_ivy_cache())),
        *(("-settings", settings) if settings else ()),
        *("-confs", "connector", "broker", "-types", "jar", "bundle"),
        *("-retrieve", f"{into}/[conf]/[artifact]-[revision].[ext]"),
    ]


def _ivy_cache() -> Path:
    """Ivy's own cache: an interrupted installation resumes from it, and a complete one drops it."""
    return cache_path("ivy")


def _pinned() -> dict[str, str]:
    """`conf/file.jar` to its SHA-256."""
    lines = (line.split() for line in CHECKSUMS.read_text().splitlines())
    return {name: digest for digest, name in lines}


def _wrong(root: Path, names: list[str]) -> str | None:
    """The first file that is absent or has other content than pinned, in words."""
    pinned = _pinned()
    for name in names:
        if not (root / name).exists():
            return f"{root / name} is missing"
        if (actual := _sha256(root / name)) != pinned[name]:
            return f"{root / name} has SHA-256 {actual}, expected {pinned[name]}"
    return None


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
