"""A release is the texts of a folder: they become the same stream again wherever they are read."""

import shutil
from pathlib import Path

import pytest

from lozenge.errors import ConfigError
from lozenge.streams.release_files import as_folder, definition_of, digest_of, files_of, is_file_of_release
from tests.streams import AUTH, FOLDER


def test_the_texts_of_a_folder_are_the_stream_again() -> None:
    files = files_of(FOLDER / "auth")
    assert sorted(files) == ["event.avsc", "mappings/auth_iso8583.toml", "mappings/auth_json.toml", "stream.toml"]
    assert definition_of(files, "auth") == AUTH
    with as_folder(files, "auth") as folder:
        assert files_of(folder) == files
        assert folder.name == "auth"
    assert not folder.exists()


def test_a_digest_changes_with_every_text_and_every_path() -> None:
    files = {"stream.toml": "a", "mappings/x.toml": "b"}
    others = ({"stream.toml": "a"}, files | {"stream.toml": "ab"}, {"stream.toml": "a", "mappings/y.toml": "b"})
    assert digest_of(files) == digest_of(dict(reversed(files.items())))
    assert digest_of(files) not in set(map(digest_of, others))


@pytest.mark.parametrize(
    ("path", "may"),
    [
        ("stream.toml", True),
        ("event.avsc", True),
        ("mappings/wallet.toml", True),
        ("mappings/../../x.toml", False),
        ("mappings/a/b.toml", False),
        ("/etc/passwd", False),
        ("samples/x.json", False),
    ],
)
def test_a_release_has_no_file_elsewhere(path: str, may: bool) -> None:
    assert is_file_of_release(path) == may


def test_every_file_that_is_no_text_or_is_missing_is_named(tmp_path: Path) -> None:
    shutil.copytree(FOLDER / "auth", tmp_path / "auth")
    (tmp_path / "auth" / "event.avsc").unlink()
    (tmp_path / "auth" / "mappings" / "wallet.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigError) as caught:
        files_of(tmp_path / "auth")
    assert [problem.split(":")[0] for problem in caught.value.problems] == ["event.avsc", "mappings/wallet.toml"]
