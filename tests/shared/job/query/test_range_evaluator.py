"""Long ranges are evaluated in chunks that cover every offset once."""

from lozenge.job.query.range_evaluator import chunks


def test_chunks_cover_every_offset_once() -> None:
    ranges = {0: (5, 12), 1: (0, 3), 2: (7, 8)}
    parts = list(chunks(ranges, 6))
    covered = [(p, o) for part in parts for p, (start, end) in part.items() for o in range(start, end)]
    assert sorted(covered) == [(p, o) for p, (start, end) in ranges.items() for o in range(start, end)]
    assert max(end - start for part in parts for start, end in part.values()) == 2
    assert list(chunks({}, 6)) == []
