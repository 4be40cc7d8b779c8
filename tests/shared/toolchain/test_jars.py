"""Jars are handed out only with the pinned content, and installed in one step. No network: `fetch` is replaced."""

import hashlib
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lozenge.errors import ToolchainError
from lozenge.toolchain import cache_path, jars

CONTENT = {"connector/a-1.jar": b"a", "connector/b-1.jar": b"b", "broker/c-1.jar": b"c"}


def write_jars(into: Path, total: int | None = None) -> None:
    for name, content in CONTENT.items():
        (into / name).parent.mkdir(exist_ok=True)
        (into / name).write_bytes(content)


@pytest.fixture(autouse=True)
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty cache, three small jars and their checksums."""
    checksums = tmp_path / "jars.sha256"
    checksums.write_text("".join(f"{hashlib.sha256(body).hexdigest()}  {name}\n" for name, body in CONTENT.items()))
    monkeypatch.setenv("LOZENGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(jars, "CHECKSUMS", checksums)
    monkeypatch.setattr(jars, "fetch", write_jars)


def test_the_first_use_installs_the_jars() -> None:
    assert [jar.name for jar in jars.jars("connector")] == ["a-1.jar", "b-1.jar"]
    assert [jar.name for jar in jars.jars("broker")] == ["c-1.jar"]


def test_a_second_installation_fetches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    jars.install()
    monkeypatch.setattr(jars, "fetch", lambda *_, **__: pytest.fail("fetched again"))
    jars.install()


def test_a_jar_with_another_checksum_is_never_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(into: Path, total: int | None = None) -> None:
        write_jars(into)
        into.joinpath("broker/c-1.jar").write_bytes(b"evil")
        cache_path("ivy").mkdir()

    monkeypatch.setattr(jars, "fetch", fetch)
    with pytest.raises(ToolchainError, match=r"broker/c-1\.jar has SHA-256 \w{64}, expected") as caught:
        jars.install()
    assert "make setup" in caught.value.hint
    assert not jars.folder().exists()
    assert not list(jars.folder().parent.glob(".new-*")), "the half-made folder must be gone"
    assert not cache_path("ivy").exists(), "or the next attempt would find the same file"


def test_a_jar_that_changed_after_installation_is_refused_and_replaced() -> None:
    changed = jars.install() / "connector/a-1.jar"
    changed.write_bytes(b"other")
    with pytest.raises(ToolchainError, match=r"a-1\.jar has SHA-256"):
        jars.jars("connector")
    assert jars.jars("broker"), "another configuration is not affected"
    jars.install()
    assert jars.jars("connector")


def test_a_missing_jar_is_named() -> None:
    jars.install().joinpath("connector/b-1.jar").unlink()
    with pytest.raises(ToolchainError, match=r"b-1\.jar is missing"):
        jars.jars("connector")


def test_a_failed_download_shows_the_message_of_ivy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.undo()
    script = "print('downloading x'); print('Server access error: no route'); raise SystemExit(1)"
    monkeypatch.setattr(jars, "_ivy", lambda into: [sys.executable, "-c", script])
    with pytest.raises(ToolchainError, match="Server access error: no route") as caught:
        jars.fetch(tmp_path)
    assert "LOZENGE_IVY_SETTINGS" in caught.value.hint


def test_two_processes_install_the_jars_once(tmp_path: Path) -> None:
    script = (
        "import pathlib, sys, time\n"
        "from lozenge.toolchain import jars\n"
        "jars.CHECKSUMS = pathlib.Path(sys.argv[1])\n"
        "def fetch(into, total=None):\n"
        "    time.sleep(0.5); print('fetched')\n"
        f"    for name, content in {CONTENT!r}.items():\n"
        "        (into / name).parent.mkdir(exist_ok=True); (into / name).write_bytes(content)\n"
        "jars.fetch = fetch\n"
        "jars.install()\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "jars.sha256")]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=60) for process in started]
    assert [process.returncode for process in started] == [0, 0], said
    assert sorted(out for out, _ in said) == ["", "fetched\n"]


def test_checksums_cover_what_ivy_xml_pins() -> None:
    listed = jars.MODULES.with_name("jars.sha256").read_text()
    for dependency in ElementTree.parse(jars.MODULES).iter("dependency"):
        file = f"{dependency.get('name')}-{dependency.get('rev')}.jar"
        assert f"/{file}\n" in listed, f"{file} has no checksum: run `make lock`"
