"""Nothing bad replaces something good: whether a new version of a file may be in force, as a pure decision."""

from typing import Any

import pytest

from lozenge.process.last_good import Bounds, Contents, refusals

GOOD = Contents("one", 100, {"mcc": "string", "limit": "int"})


def after(last: Contents | None, bounds: Bounds | None = None, **found: Any) -> str:
    values = {"digest": "two", "entries": 100, "shape": GOOD.shape, **found}
    return "; ".join(refusals(Contents(**values), last, bounds or Bounds()))


@pytest.mark.parametrize("last", [None, GOOD])
def test_a_whole_version_is_taken_first_and_later(last: Contents | None) -> None:
    assert after(last) == ""


@pytest.mark.parametrize("last", [None, GOOD])
def test_what_is_wrong_with_a_version_by_itself_is_all_that_is_said(last: Contents | None) -> None:
    assert after(last, problems=("line 3 has 2 fields", "line 4 has 1"), entries=0) == (
        "line 3 has 2 fields; line 4 has 1"
    )


@pytest.mark.parametrize("last", [None, GOOD])
def test_an_empty_version_is_refused_unless_it_may_be_empty(last: Contents | None) -> None:
    assert "it has no rows" in after(last, entries=0)
    assert after(last, Bounds(may_be_empty=True), entries=0) == ""


@pytest.mark.parametrize(("rows", "why"), [(49, "shrinks_to = 0.5"), (50, ""), (1_000, ""), (1_001, "grows_to = 10")])
def test_the_number_of_rows_stays_within_bounds_of_the_version_before(rows: int, why: str) -> None:
    assert after(None, entries=rows) == ""
    found = after(GOOD, entries=rows)
    assert why in found
    assert bool(found) == bool(why)
    assert after(GOOD, Bounds(shrinks_to=0, grows_to=1e9), entries=rows) == ""


def test_a_list_of_a_few_rows_may_change_to_any_size() -> None:
    few = Contents("one", 9, GOOD.shape)
    assert after(few, entries=1) == ""
    assert after(few, entries=10_000) == ""
    assert "shrinks_to" in after(Contents("one", 10, GOOD.shape), entries=1)


def test_columns_may_be_added_but_neither_vanish_nor_change_their_type() -> None:
    assert after(GOOD, shape={**GOOD.shape, "note": "string"}) == ""
    assert after(GOOD, shape={"mcc": "int"}) == (
        "its column mcc is int, and was string; it has no column limit, which the version before has"
    )


def test_a_column_keeps_its_values_within_the_bound_of_rows() -> None:
    full = Contents("one", 100, GOOD.shape, values={"mcc": 100, "limit": 100, "note": 9})
    assert after(full, values={"mcc": 100, "limit": 50, "note": 0}) == ""
    assert after(full, values={"mcc": 100, "limit": 0}) == (
        "its column limit has 0 values, and 100 in the version before (shrinks_to = 0.5)"
    )
    assert after(full, Bounds(shrinks_to=0), values={"limit": 0}) == ""
    assert after(full, entries=10, values={"limit": 0}) == (
        "it has 10 rows, and the version before has 100 (shrinks_to = 0.5)"
    )


def test_a_last_line_without_an_end_is_refused_where_the_version_before_had_one() -> None:
    cut = Contents("one", 100, GOOD.shape, terminated=False)
    assert "may be cut off" in after(GOOD, terminated=False)
    assert after(cut, terminated=False) == after(None, terminated=False) == after(cut) == ""
