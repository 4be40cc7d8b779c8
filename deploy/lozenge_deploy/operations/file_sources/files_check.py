"""The newest files of a source against its declaration, before it is released."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lozenge.errors import PROBLEM, LozengeError
from lozenge.protocol.file_positions import FilePosition, FileState
from lozenge_deploy.operations.streams.upstream_tools import asked

Found = Sequence[dict[str, Any]]


def look_of(name: str, doing: str) -> Found:
    """The newest files of a source, each with its `problem`; raises UsageError if their folder cannot be listed."""
    found: Found = asked(doing, "lozenge_upstream.files.check_source", name)
    return found


def require_good(found: Found, positions: Callable[[], Iterable[FilePosition]], doing: str) -> None:
    """Raises LozengeError with each file that a release would fail on.

    A file that is done or has failed already is of no concern: its columns may be those of an earlier release.
    """
    bad = [each for each in found if each["problem"]]
    if bad:
        past = {position.path for position in positions() if position.state is not FileState.COPYING}
        bad = [each for each in bad if each["file"] not in past]
    if bad:
        lines = (f"{PROBLEM}{each['file']}: {each['problem']}" for each in bad)
        raise LozengeError(
            "\n".join([f"{doing}: {len(bad)} of {len(found)} files would fail", *lines]),
            hint="change the columns in source.toml, or the files; --skip-files deploys it nevertheless",
        )
