"""The shape of a fold's stored state, and whether a release can resume with what another one has stored.

A shape is plain JSON, so that it travels with a release: `by`, the columns of the key in order; `expires`;
`fields`, the type of each field of the state; `required`, those without a default. A type is a name, a
list of alternatives, or an object: `items` of a list, `keys` and `values` of a dictionary, `fields` and
`required` of a nested state.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec.inspect as types

from lozenge.detector.fold import Fold
from lozenge.durations import text_of

Shape = Mapping[str, Any]
Kind = str | Sequence[Any] | Mapping[str, Any]
"""A type as it is written in a shape."""
_WORDS = {"fields": "a nested state", "items": "list", "keys": "dictionary"}


def shape(fold: Fold[Any]) -> dict[str, Any]:
    """What `fold` keeps per key."""
    state = types.type_info(fold.state)
    assert isinstance(state, types.StructType)
    return {"by": list(fold.by), "expires": text_of(fold.expires), **_struct(state)}


def refusal(old: Shape, new: Shape) -> str | None:
    """Why a release of shape `new` cannot resume with the state that one of shape `old` has stored; None if it can.

    Fields may go, and come with a default; how long a key is kept may change.
    """
    if old["by"] != new["by"]:
        return f"its keys were made of {', '.join(old['by'])} and are now made of {', '.join(new['by'])}"
    return "; ".join(_field_changes("", old, new)) or None


def _struct(struct: types.StructType) -> dict[str, Any]:
    return {
        "fields": {field.encode_name: _kind(field.type) for field in struct.fields},
        "required": sorted(field.encode_name for field in struct.fields if field.required),
    }


def _kind(found: types.Type) -> Kind:
    match found:
        case types.StructType():
            return _struct(found)
        case types.UnionType():
            return [_kind(one) for one in found.types]
        case types.DictType():
            return {"keys": _kind(found.key_type), "values": _kind(found.value_type)}
        case types.CollectionType():
            return {"items": _kind(found.item_type)}
        case types.TupleType():
            return {str(position): _kind(one) for position, one in enumerate(found.item_types)}
        case types.LiteralType():
            return f"one of {', '.join(sorted(map(str, found.values)))}"
        case types.EnumType():
            return f"one of {', '.join(sorted(str(one.value) for one in found.cls))}"
        case _:
            return type(found).__name__.removesuffix("Type").lower()


def _changes(path: str, old: Kind, new: Kind) -> Iterator[str]:
    """What in values of the type `old` does not fit `new`."""
    if isinstance(old, list) or isinstance(new, list):
        if not all(any(_fits(o, n) for n in _alternatives(new)) for o in _alternatives(old)):
            yield _changed(path, old, new)
    elif isinstance(old, Mapping) and isinstance(new, Mapping) and "fields" in old and "fields" in new:
        yield from _field_changes(f"{path}.", old, new)
    elif isinstance(old, Mapping) and isinstance(new, Mapping) and old.keys() == new.keys():
        for part in old:
            yield from _changes(f"{path}[{part}]", old[part], new[part])
    elif old != new:
        yield _changed(path, old, new)


def _field_changes(prefix: str, old: Shape, new: Shape) -> Iterator[str]:
    for name, kind in new["fields"].items():
        if name in new["required"] and name not in old["required"]:
            yield f"{prefix}{name} has no default now, and what is stored may lack it"
        elif name in old["fields"]:
            yield from _changes(f"{prefix}{name}", old["fields"][name], kind)


def _fits(old: Kind, new: Kind) -> bool:
    return next(_changes("", old, new), None) is None


def _alternatives(kind: Kind) -> Sequence[Any]:
    return kind if isinstance(kind, list) else [kind]


def _changed(path: str, old: Kind, new: Kind) -> str:
    return f"{path} was {_spoken(old)} and is now {_spoken(new)}"


def _spoken(kind: Kind) -> str:
    return " or ".join(_word(one) for one in _alternatives(kind))


def _word(kind: Kind) -> str:
    if not isinstance(kind, Mapping):
        return str(kind)
    return next((word for part, word in _WORDS.items() if part in kind), "tuple")
