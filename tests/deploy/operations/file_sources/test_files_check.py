from typing import Any

import pytest

from lozenge.errors import LozengeError
from lozenge.protocol.file_positions import FileId, FilePosition, FileState
from lozenge_deploy.operations.file_sources.files_check import require_good


def _file(name: str, problem: str = "") -> dict[str, Any]:
    return {"file": name, "bytes": 1, "rows": 1, "problem": problem}


def test_each_file_that_would_fail_is_named() -> None:
    found = [_file("a.csv"), _file("b.csv", "card: it is missing")]
    with pytest.raises(LozengeError, match=r"1 of 2 files would fail\n  - b\.csv: card: it is missing") as raised:
        require_good(found, list, "deploying it")
    assert "--skip-files" in raised.value.hint


@pytest.mark.parametrize("state", [FileState.DONE, FileState.FAILED])
def test_a_file_that_an_earlier_release_read_stops_no_release(state: FileState) -> None:
    found = [_file("a.csv", "card: it is missing")]
    require_good(found, lambda: [FilePosition("a.csv", FileId(1, 1), state)], "deploying it")
    with pytest.raises(LozengeError, match=r"a\.csv"):
        require_good(found, lambda: [FilePosition("a.csv", FileId(1, 1), FileState.COPYING)], "deploying it")


def test_sound_files_need_no_positions() -> None:
    require_good([_file("a.csv")], lambda: pytest.fail("nothing is to be asked"), "deploying it")
