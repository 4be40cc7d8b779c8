"""What a release of a stream is: the texts of its folder that decide what becomes of a raw record."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from lozenge.errors import ConfigError
from lozenge.process.text_files import bad_byte, text_in
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.folder import DECLARATION, MAPPINGS, SCHEMA, read

_FILE = re.compile(rf"{re.escape(DECLARATION)}|{re.escape(SCHEMA)}|{MAPPINGS}/[^/\\]+\.toml")


def files_of(folder: Path) -> dict[str, str]:
    """The texts of a stream's folder, by their paths in it; raises ConfigError with every file that cannot be read."""
    mappings = sorted((folder / MAPPINGS).glob("*.toml"))
    found, problems = dict[str, str](), list[str]()
    for file in (folder / DECLARATION, folder / SCHEMA, *mappings):
        name = file.relative_to(folder).as_posix()
        try:
            found[name] = text_in(file.read_bytes())
        except UnicodeDecodeError as error:
            problems.append(f"{name}: not UTF-8: {bad_byte(error)}")
        except OSError as error:
            problems.append(f"{name}: {error.strerror}")
    if problems:
        raise ConfigError(f"reading the stream {folder}", problems=problems, hint="fix the files named")
    return found


def is_file_of_release(path: str) -> bool:
    """Whether a release may have a file of this path."""
    return _FILE.fullmatch(path) is not None


def digest_of(files: Mapping[str, str]) -> str:
    """Twelve hex digits over paths and texts."""
    digest = hashlib.sha256()
    for path, text in sorted(files.items()):
        digest.update(f"{len(path)} {path} {len(text)} {text}".encode())
    return digest.hexdigest()[:12]


@contextmanager
def as_folder(files: Mapping[str, str], stream: str) -> Iterator[Path]:
    """A folder of the stream with these texts, while the block runs."""
    with TemporaryDirectory(prefix="lozenge-stream-") as above:
        folder = Path(above, stream)
        (folder / MAPPINGS).mkdir(parents=True)
        for path, text in files.items():
            (folder / path).write_text(text, "utf-8")
        yield folder


def definition_of(files: Mapping[str, str], stream: str) -> StreamDefinition:
    """The stream that these texts declare; raises ConfigError with every problem at once."""
    with as_folder(files, stream) as folder:
        return read(folder)
