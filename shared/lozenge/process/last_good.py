"""Whether a new version of a file that a process reads while it runs may replace the last good one.

Pure: the reader of a file says what it found in it, and gets what is wrong with it. `file_versions` keeps them.
"""

from collections.abc import Iterator

import msgspec

FEW = 10
"""A version with fewer entries may be followed by one of any size: a share of them says nothing."""


class Contents(msgspec.Struct, frozen=True):
    """What was found in one version of a file or folder, after all of it was read.

    - `digest`: twelve hex digits over its bytes; "" if it could not be read.
    - `entries`: how many rows it has.
    - `shape`: what its users rely on, such as the type of each column by name.
    - `terminated`: whether it ends as a complete file of its kind does, if that can be seen.
    - `problems`: everything that is wrong with it by itself.
    - `values`: how many rows have a value, by column; of the columns that were counted.
    """

    digest: str = ""
    entries: int = 0
    shape: dict[str, str] = {}
    terminated: bool = True
    problems: tuple[str, ...] = ()
    values: dict[str, int] = {}


class Bounds(msgspec.Struct, frozen=True):
    """How the number of entries may change from one version to the next, as multiples of the last one.

    A column has no fewer values than `shrinks_to` says either.
    """

    shrinks_to: float = 0.5
    grows_to: float = 10.0
    may_be_empty: bool = False


def refusals(found: Contents, last: Contents | None, bounds: Bounds) -> tuple[str, ...]:
    """Why `found` must not replace the `last` good version, or be the first one; empty if it may."""
    if found.problems:
        return found.problems
    return tuple(_against(found, last, bounds))


def _against(found: Contents, last: Contents | None, bounds: Bounds) -> Iterator[str]:
    if not found.entries and not bounds.may_be_empty:
        yield "it has no rows; if that is as it should be, declare may_be_empty = true"
    if last is None:
        return
    for name, kind in last.shape.items():
        if name not in found.shape:
            yield f"it has no column {name}, which the version before has"
        elif found.shape[name] != kind:
            yield f"its column {name} is {found.shape[name]}, and was {kind}"
    if last.terminated and not found.terminated:
        yield "its last line has no end, so it may be cut off; end it with a line break"
    if last.entries < FEW or not found.entries:
        return
    share = found.entries / last.entries
    for fits, key, limit in (
        (share >= bounds.shrinks_to, "shrinks_to", bounds.shrinks_to),
        (share <= bounds.grows_to, "grows_to", bounds.grows_to),
    ):
        if not fits:
            yield f"it has {found.entries} rows, and the version before has {last.entries} ({key} = {limit:g})"
            return
    for name, before in last.values.items():
        if name in found.values and before >= FEW and found.values[name] < before * bounds.shrinks_to:
            yield (
                f"its column {name} has {found.values[name]} values, and {before} in the version before "
                f"(shrinks_to = {bounds.shrinks_to:g})"
            )
