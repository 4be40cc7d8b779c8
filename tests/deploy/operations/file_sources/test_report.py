from lozenge.protocol.file_positions import FileId, FilePosition, FileState, Place
from lozenge.protocol.source_requests import SourceRequest, SourceState
from lozenge_deploy.operations.file_sources.report import file_row, source_row

COPYING = FilePosition("a", FileId(10, 1), FileState.COPYING, Place(rows=25), bad=5, total=100)
DONE = FilePosition("b", FileId(10, 1), FileState.DONE, Place(rows=40))


def test_a_row_of_a_source_has_its_files_by_state_and_what_is_left() -> None:
    state = SourceState("night", SourceRequest("night", 2, instances=3, rate=500.0))
    samples = {"lozenge_files{state=waiting}": 7.0, "lozenge_files_waiting_bytes": 99.0}
    row = source_row("night", state, [COPYING, DONE], samples, 12.34)
    assert row["phase"] == "deployed"
    assert (row["waiting"], row["copying"], row["done"], row["failed"]) == (7, 1, 1, 0)
    assert (row["rows"], row["bad"], row["rows_left_of_copying"], row["waiting_bytes"]) == (60, 5, 75, 99)
    assert (row["release"], row["instances"], row["limit"], row["per_second"]) == ("r2", 3, 500.0, 12.3)


def test_a_source_that_is_not_deployed_or_paused_says_so() -> None:
    assert source_row("night", None, [], {}, 0.0)["phase"] == "not deployed"
    paused = SourceState("night", SourceRequest("night", 1, paused=True))
    assert source_row("night", paused, [], {}, 0.0)["phase"] == "paused"


def test_a_row_of_a_file_has_its_share_where_the_format_says_how_many_rows_there_are() -> None:
    assert (file_row(COPYING)["share"], file_row(COPYING)["of"]) == ("25 %", 100)
    assert (file_row(DONE)["share"], file_row(DONE)["of"]) == ("", None)
