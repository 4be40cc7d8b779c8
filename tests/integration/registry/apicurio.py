"""A real Apicurio Registry: fetched once per user by the Ivy inside pyspark, checked by SHA-256, run from its jar."""

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from lozenge.toolchain import cache_path, one_at_a_time
from lozenge.toolchain.java import java_home
from lozenge_deploy.local.ports import free_port

HERE = Path(__file__).parent
SHA256 = "2b28181501a20cbf6efcd77f9b7153908fc01f3d3a7c32024c0bd9e1b04c8a43"
START_SECONDS = 180.0
FETCH_SECONDS = 300.0


class NotFetched(Exception):
    """The archive is neither in the user's cache nor to be had from the repository."""


@contextmanager
def apicurio(folder: Path) -> Iterator[str]:
    """Runs an empty registry, with its log in `folder`; gives its address. Raises NotFetched."""
    port = free_port(0)
    jar = next(_installed().glob("apicurio-registry-app-*-runner.jar"))
    command = [str(java_home() / "bin" / "java"), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    variables = {
        "QUARKUS_HTTP_HOST": "127.0.0.1",
        "QUARKUS_HTTP_PORT": str(port),
        "QUARKUS_MANAGEMENT_ENABLED": "false",
    }
    with (
        (folder / "apicurio.log").open("wb") as log,
        subprocess.Popen(
            [*command, "-jar", str(jar)], env={**os.environ, **variables}, cwd=folder, stdout=log, stderr=log
        ) as process,
    ):
        try:
            address = f"http://127.0.0.1:{port}"
            _await(f"{address}/apis/ccompat/v7/subjects", process, folder / "apicurio.log")
            yield address
        finally:
            process.terminate()


def import_archive(address: str, archive: Path) -> None:
    """Has the registry import what `lozenge schemas export --apicurio` has written."""
    request = urllib.request.Request(
        f"{address}/apis/registry/v3/admin/import",
        data=archive.read_bytes(),
        headers={"Content-Type": "application/zip"},
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        assert response.status == 204


def _await(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not _answers(url):
        output = log.read_text("utf-8", "replace")[-2000:]
        assert process.poll() is None, f"Apicurio ended: {output}"
        assert time.monotonic() < deadline, f"Apicurio does not answer: {output}"
        time.sleep(0.2)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False


def _installed() -> Path:
    """The folder of the unpacked archive; fetches it if it is absent. Raises NotFetched."""
    target = cache_path("apicurio", SHA256[:12])
    with one_at_a_time("apicurio"):
        if not target.exists():
            stage = Path(tempfile.mkdtemp(prefix=".new-", dir=target.parent))
            try:
                archive = _fetched(stage)
                digest = hashlib.sha256(archive.read_bytes()).hexdigest()
                assert digest == SHA256, f"{archive.name} has SHA-256 {digest}, expected {SHA256}"
                with tarfile.open(archive) as content:
                    content.extractall(stage / "unpacked", filter="data")
                (stage / "unpacked").rename(target)
            finally:
                shutil.rmtree(stage, ignore_errors=True)
    return target


def _fetched(stage: Path) -> Path:
    ivy = next(Path(pyspark.__file__).parent.glob("jars/ivy-*.jar"))
    settings = os.environ.get("LOZENGE_IVY_SETTINGS", str(HERE / "ivysettings.xml"))
    command = [str(java_home() / "bin" / "java"), "-Divy.checksums=", f"-Divy.default.ivy.user.dir={stage}"]
    command += ["-Dsun.net.client.defaultConnectTimeout=10000", "-Dsun.net.client.defaultReadTimeout=30000"]
    command += ["-jar", str(ivy), "-settings", settings, "-ivy", str(HERE / "apicurio.ivy.xml"), "-cache", str(stage)]
    command += ["-confs", "registry", "-retrieve", f"{stage}/[artifact].[ext]"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise NotFetched(f"Ivy did not end within {FETCH_SECONDS:.0f} s") from error
    archive = stage / "apicurio-registry-app.tar.gz"
    if run.returncode != 0 or not archive.exists():
        problems = (line.strip() for line in run.stdout.splitlines() if "access error" in line)
        raise NotFetched(next(problems, f"Ivy ended with code {run.returncode}"))
    return archive
