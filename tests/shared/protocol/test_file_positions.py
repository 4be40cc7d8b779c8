import pytest

from lozenge.protocol.file_positions import FileId, FilePosition, FileState, Place, decode, record

POSITION = FilePosition("day/a.csv", FileId(7, 1, "d"), FileState.COPYING, Place(rows=3, offset=40), bad=1)


def test_a_position_comes_back_as_it_was_in_the_partition_of_its_path() -> None:
    written = record("topic", POSITION)
    assert decode(written.key or b"", written.value or b"") == POSITION
    assert written.partition == POSITION.partition


@pytest.mark.parametrize("value", [b"", b"{}", b"[]", b'{"path":"day/b.csv"}', record("t", POSITION).value])
def test_any_other_record_is_refused(value: bytes) -> None:
    with pytest.raises(ValueError):
        decode(b"day/b.csv", value)


def test_a_file_is_the_same_by_size_and_time() -> None:
    assert FileId(7, 1).is_same(FileId(7, 1, "digest"))
    assert not FileId(7, 1).is_same(FileId(7, 2))
    assert not FileId(7, 1).is_same(FileId(8, 1))
