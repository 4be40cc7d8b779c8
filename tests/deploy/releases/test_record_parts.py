"""A large value is cut into records, and is whole again when they are read."""

import pytest

from lozenge_deploy.releases.record_parts import PART_BYTES, joined, split
from lozenge_deploy.releases.release_store import check_release


@pytest.mark.parametrize("size", [0, 1, PART_BYTES, PART_BYTES + 1, 2 * PART_BYTES, 12 * PART_BYTES + 7])
def test_a_value_of_any_size_is_the_same_after_its_records_are_read_in_any_order(size: int) -> None:
    value = (b"0123456789" * (size // 10 + 1))[:size]
    records = split("spotter/r7", value) | split("spotter/r17", b"another")
    assert all(len(each) <= PART_BYTES for each in records.values())
    assert all(key.startswith("spotter/") for key in records)
    assert joined(dict(reversed(records.items()))) == {"spotter/r17": b"another", "spotter/r7": value}


@pytest.mark.parametrize("missing", ["spotter/r7", "spotter/r7/part/0", "spotter/r7/part/1"])
def test_a_value_that_is_not_whole_is_no_value(missing: str) -> None:
    records = split("spotter/r7", bytes(PART_BYTES + 1))
    del records[missing]
    assert joined(records | {"spotter/r8": b"whole"}) == {"spotter/r8": b"whole"}
    records[missing] = b"another"
    assert joined({**records, "spotter/r7/part/1": b"of others"}).get("spotter/r7") in (None, b"another")


def test_a_part_is_a_record_of_releases_and_what_others_write_is_not() -> None:
    for key, value in split("spotter/r7", bytes(PART_BYTES + 1)).items():
        check_release(key.encode(), value)
    for value in (b'{"parts": "many"}', b'{"parts":', b"", b"\xff"):
        with pytest.raises(ValueError):
            check_release(b"spotter/r7", value)
