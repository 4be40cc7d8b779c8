"""A version that is read: what it changes, and everything that is wrong with it."""

from collections.abc import Mapping
from typing import Any

from lozenge.process.last_good import Bounds, Contents, refusals
from lozenge.protocol.table_records import LONGEST_ROW, decoded_row
from lozenge_upstream.tables.difference import NewVersion, known_of
from tests.tables import Row, limits

DE: Row = ("DE", "100.00", None)
FR: Row = ("FR", "200.00", "2026-03-01T12:00:00Z")


def read(*rows: Row, known: Mapping[str, bytes] | None = None, **changed: Any) -> NewVersion:
    """A version of these rows, in parts of two."""
    found = NewVersion(limits(**changed), known or {})
    for begin in range(0, len(rows), 2):
        found.add([*zip(*rows[begin : begin + 2], strict=True)])
    return found


def test_a_first_version_adds_all_rows_and_the_same_rows_change_nothing() -> None:
    first = read(DE, FR, ("IT", 5, None))
    assert {key: decoded_row(row)["most"] for key, row in first.change().added.items()} == {
        '["DE"]': "100.0000",
        '["FR"]': "200.0000",
        '["IT"]': "5.0000",
    }
    again = read(("IT", "5", None), DE, FR, known=first.seen)
    assert not again.change()
    found = again.contents()
    assert (found.entries, found.values, found.problems) == (3, {"country": 3, "most": 3, "since": 1}, ())


def test_rows_are_added_changed_and_removed() -> None:
    known = known_of(read(DE, FR, ("IT", 5, None)).change().added)
    change = read(DE, ("FR", "200.00", None), ("ES", 7, None), known=known).change()
    assert ([*change.added], [*change.changed], [*change.removed]) == (['["ES"]'], ['["FR"]'], ['["IT"]'])
    assert str(change) == "1 added, 1 changed, 1 removed"


def test_every_problem_of_a_version_is_named_at_once_and_nothing_of_it_is_held() -> None:
    found = read(DE, ("FR", "many", None), ("FR", None, "soon"), (None, 1, None), ("DE", 1, None))
    assert found.contents().problems == (
        "row 2 (country FR): most is 'many' (str), which is no decimal(18,4)",
        "row 3 (country FR): most is null, and every row has one",
        "row 3 (country FR): since is 'soon' (str), which is no timestamp",
        "row 4 (country None): country is null, and every row has one",
    )
    assert not found.change()
    assert read(DE, FR, DE).contents().problems == ("row 3 (country DE): an earlier row has the same key",)


def test_many_problems_are_counted() -> None:
    problems = read(*((str(n), "x", None) for n in range(50))).contents().problems
    assert len(problems) == 11
    assert problems[-1] == "and 40 more"


def test_a_version_with_too_many_rows_or_too_large_a_row_is_refused() -> None:
    found = read(DE, FR, ("IT", 5, None), rows=2)
    assert found.is_too_long
    assert "it has more than 2 rows" in found.contents().problems[-1]
    [problem] = read(("x" * LONGEST_ROW, 1, None)).contents().problems
    assert "65,536 are taken" in problem


def test_a_version_that_has_shrunk_is_refused_by_the_bounds_of_the_last_good_one() -> None:
    found = read(DE, FR).contents()
    [problem] = refusals(found, Contents("", 100, values={"country": 100}), Bounds())
    assert problem == "it has 2 rows, and the version before has 100 (shrinks_to = 0.5)"
