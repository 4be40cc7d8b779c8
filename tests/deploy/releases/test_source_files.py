"""What cannot be read in a folder is named, and nothing waits for it or follows it without end."""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lozenge_deploy.cli.author.scaffold import write
from lozenge_deploy.releases.lint.folder import findings
from lozenge_deploy.releases.source_files import source_files
from tests.streams import AUTH

NOBODY = 65_534


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "spotter", "rule", "somebody", AUTH)
    return tmp_path / "spotter"


def link(name: str, target: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).symlink_to(target)


def ring(folder: Path) -> None:
    (folder / "one").symlink_to("two")
    (folder / "two").symlink_to("one")


def listener(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        os.chdir(folder)  # a path of a socket is short
        made.bind("socket")


def instead(file: str, make: Callable[[Path], object]) -> Callable[[Path], object]:
    def made(folder: Path) -> None:
        (folder / file).unlink()
        make(folder / file)

    return made


def below(make: Callable[[Path], object]) -> Callable[[Path], object]:
    def made(folder: Path) -> None:
        (folder / "sub").mkdir()
        make(folder / "sub")

    return made


def file_of_bytes(name: bytes) -> Callable[[Path], object]:
    return lambda folder: Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).touch()


ENDLESS = "a link to a folder that holds it, which has no end: remove it, or link what is needed alone"
NO_UTF8 = "its name is not UTF-8: rename it"
NO_FILE = "which no wheel can hold: remove it"


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (link("loop", "loop"), ["loop: a link that leads back to itself, by loop: remove it"]),
        (
            ring,
            [
                "one: a link that leads back to itself, by two: remove it",
                "two: a link that leads back to itself, by one: remove it",
            ],
        ),
        (link("m.bin", "gone/m"), ["m.bin: a link to nothing, gone/m: remove it, or put there what it names"]),
        (link("up", ".."), [f"up: {ENDLESS}"]),
        (link("root", "/"), [f"root: {ENDLESS}"]),
        (link("here", "."), [f"here: {ENDLESS}"]),
        (below(link("back", "..")), [f"sub/back: {ENDLESS}"]),
        (lambda folder: os.mkfifo(folder / "pipe"), [f"pipe: a named pipe, {NO_FILE}"]),
        (lambda folder: os.mkfifo(folder / "pipe.py"), [f"pipe.py: a named pipe, {NO_FILE}"]),
        (instead("spotter.py", os.mkfifo), [f"spotter.py: a named pipe, {NO_FILE}"]),
        (instead("README.md", os.mkfifo), [f"README.md: a named pipe, {NO_FILE}"]),
        (instead("pyproject.toml", os.mkfifo), [f"pyproject.toml: a named pipe, {NO_FILE}"]),
        (listener, [f"socket: a socket, {NO_FILE}"]),
        (link("null", "/dev/null"), [f"null: a device, {NO_FILE}"]),
        (file_of_bytes(b"data\xff.txt"), [f"data\\xff.txt: {NO_UTF8}"]),
        (file_of_bytes(b"m\xfcller.py"), [f"m\\xfcller.py: {NO_UTF8}"]),
        (below(file_of_bytes(b"\xff")), [f"sub/\\xff: {NO_UTF8}"]),
        (file_of_bytes("müller.txt".encode()), []),
        (file_of_bytes(b".data\xff"), [f".data\\xff: {NO_UTF8}"]),
    ],
)
def test_what_no_build_can_read_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], object], found: list[str]
) -> None:
    monkeypatch.chdir(folder)
    make(folder)
    assert findings(folder).faults == found
    assert all(file.is_file() for file in source_files(folder))


def test_a_link_out_of_the_folder_is_what_it_names(folder: Path) -> None:
    common = folder.parent / "common"
    common.mkdir()
    (common / "rates.py").write_text("from .nowhere import x\n")
    (folder / "linked").symlink_to(common)
    (folder / "rates.py").symlink_to(common / "rates.py")
    assert findings(folder).faults == [
        "linked/rates.py: line 1: .nowhere is not in the folder",
        "rates.py: line 1: .nowhere is not in the folder",
    ]


def test_a_link_to_a_folder_that_the_wheel_already_has_is_named(folder: Path) -> None:
    (folder / "models").mkdir()
    (folder / "models" / "m.json").write_text("{}")
    (folder / "again").symlink_to("models")
    [fault] = findings(folder).faults
    assert "the wheel has it only as again/m.json, since it takes a linked folder once" in fault


@contextmanager
def without_rights(folder: Path) -> Iterator[None]:
    """Within the block this process is an ordinary user to whom the folder belongs, also if it was root's."""
    if os.geteuid() != 0:
        yield
        return
    for path in (folder.parent, folder, *folder.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


@pytest.mark.parametrize("path", ["m.json", "sub", "spotter.py", "pyproject.toml", "."])
def test_what_this_user_may_not_read_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    (folder / "m.json").touch()
    (folder / "sub").mkdir()
    monkeypatch.chdir(folder.parent)  # a path from here needs no right to what is above
    (folder / path).chmod(0)
    try:
        with without_rights(folder):
            [fault] = findings(Path(folder.name)).faults
    finally:
        (folder / path).chmod(0o700)
    assert "cannot be read by this user: see its permissions" in fault
