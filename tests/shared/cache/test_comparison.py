"""What differs between a topic and a store is named, and nothing else is."""

from datetime import timedelta

import pytest

from lozenge.cache.comparison import NAMED, CacheComparison, CacheProof, KeyDifference
from lozenge.cache.entries import CacheEntry, CachePosition, Lifetimes, StoredEntry

NOW = 1_800_000_000_000
HOUR = 3_600_000
POSITIONS = {0: CachePosition("id", 2, 100)}


def record(key: str, offset: int, value: str | None = "1", at: int = NOW) -> CacheEntry:
    return CacheEntry(key, value, offset, at)


def stored(key: str, offset: int, value: str | None = "1", epoch: int = 2, until: int | None = None) -> StoredEntry:
    return StoredEntry(key, value, 0, epoch, offset, NOW, until)


def compared(
    records: list[CacheEntry], has: list[StoredEntry], later: str = "", ttl: timedelta | None = None
) -> CacheProof:
    comparison = CacheComparison(POSITIONS, {0: 10}, Lifetimes(ttl, timedelta(days=1)))
    for each in records:
        comparison.take_record(0, each)
    for key in later:
        comparison.take_later(record(key, 100))
    comparison.take_stored(has, NOW)
    comparison.take_stored(has, NOW)  # a server may name a key twice
    return comparison.proof(NOW)


def counts(proof: CacheProof) -> dict[str, int]:
    found = {"right": proof.right, "expired": proof.expired, "newer": proof.newer, "unchecked": proof.unchecked}
    return {what: n for what, n in (found | {w.value: d.count for w, d in proof.differences.items()}).items() if n}


@pytest.mark.parametrize(
    ("records", "has", "expected"),
    [
        pytest.param([record("a", 11), record("a", 20, "2")], [stored("a", 20, "2.0")], "right", id="the latest"),
        pytest.param([record("a", 20)], [], "missing", id="none"),
        pytest.param([record("a", 11), record("a", 20)], [stored("a", 11)], "older", id="the one before"),
        pytest.param([record("a", 20)], [stored("a", 50, epoch=1)], "older", id="of an earlier topic"),
        pytest.param([record("a", 20)], [stored("a", 20, "2")], "differing", id="another value"),
        pytest.param([record("a", 20)], [stored("a", 30)], "differing", id="of a record that is not of the key"),
        pytest.param([record("a", 20)], [stored("a", 20, None)], "differing", id="deleted by nothing"),
        pytest.param([record("a", 11), record("a", 20, None)], [stored("a", 11)], "older", id="not deleted"),
        pytest.param([record("a", 20, None)], [stored("a", 20, None)], "right", id="deleted"),
        pytest.param([], [stored("a", 20)], "surplus", id="of no record"),
        pytest.param([], [stored("a", 9)], "unchecked", id="of a record that is gone"),
        pytest.param([], [stored("a", 50, epoch=1)], "unchecked", id="of a topic that is gone"),
        pytest.param([record("a", 20)], [stored("a", 100)], "newer", id="written meanwhile"),
    ],
)
def test_a_key_is_counted_as_what_it_is(records: list[CacheEntry], has: list[StoredEntry], expected: str) -> None:
    assert counts(compared(records, has)) == {expected: 1}


@pytest.mark.parametrize(
    ("records", "has"),
    [
        pytest.param([record("a", 20, None)], [], id="a tombstone that the store has forgotten"),
        pytest.param([], [stored("a", 20, None)], id="a tombstone that the topic has forgotten"),
        pytest.param([], [stored("a", 20, until=NOW - 1)], id="expired, and not deleted yet"),
    ],
)
def test_what_nobody_can_see_is_no_difference(records: list[CacheEntry], has: list[StoredEntry]) -> None:
    assert counts(compared(records, has)) == {}


def test_an_expired_entry_need_not_be_there_and_one_that_is_not_expired_must() -> None:
    old, recent = record("old", 20, at=NOW - 2 * HOUR), record("recent", 21, at=NOW - HOUR // 2)
    assert counts(compared([old, recent], [], ttl=timedelta(hours=1))) == {"expired": 1, "missing": 1}


def test_a_key_whose_records_were_compacted_for_a_later_one_is_not_surplus() -> None:
    assert counts(compared([], [stored("a", 20), stored("b", 21)], later="a")) == {"unchecked": 1, "surplus": 1}


def test_the_first_keys_of_each_kind_are_named_with_both_places() -> None:
    proof = compared([record(f"k{n}", 20 + n) for n in range(NAMED + 1)], [stored("k0", 15)])
    assert not proof.clean
    assert proof.differences[KeyDifference.OLDER].examples == ["k0 (topic 0:20, store 0:15)"]
    assert len(proof.differences[KeyDifference.MISSING].examples) == NAMED
    assert proof.problems[0].startswith(f"{NAMED} missing: k1 (topic 0:21)")
