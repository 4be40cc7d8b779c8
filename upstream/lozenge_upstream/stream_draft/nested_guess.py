"""The fields that nested values of raw records suggest: records, arrays and maps, each of further fields."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lozenge.streams.fields import ARRAY, MAP, RECORD
from lozenge_upstream.stream_draft.field_guess import FieldGuess, field_name, guess, guess_element
from lozenge_upstream.stream_draft.raw_records import ObservedField, path_of

MOST_LEVELS = 8
"""So deep records, lists and maps lie in each other in a draft at most."""
_ID_NAME = re.compile(r"\d.*|.*@.*|(?=.*\d).*[-:/.].*|(?=.*\d)[0-9a-fA-F]{12,}", re.DOTALL)
_MANY_NAMES = 6


@dataclass(frozen=True)
class Said:
    """What a person says of fields: their types, by their labels, and where times without an offset are read."""

    types: Mapping[str, str]
    zone: str = ""


@dataclass(frozen=True)
class _Where:
    """A raw field: its names from the record or the element on where paths begin, its label, and how deep it is."""

    steps: tuple[str, ...]
    label: str
    level: int = 1

    @property
    def path(self) -> str | None:
        return path_of(self.steps) if self.steps else "."

    def field(self, name: str) -> "_Where":
        label = path_of((name,)) or name
        return _Where((*self.steps, name), f"{self.label}.{label}" if self.label else label, self.level + 1)

    def element(self, mark: str) -> "_Where":
        return _Where((), f"{self.label}{mark}", self.level + 1)


def guess_fields(objects: Sequence[Mapping[str, Any]], said: Said) -> list[FieldGuess]:
    """A field for each name that raw records have, in the order in which they come."""
    return _fields(objects, _Where((), "", 0), said)


def of_parts(whole: FieldGuess, parts: Sequence[FieldGuess]) -> FieldGuess:
    """The record, array or map with these parts; it is not mapped where none of them is."""
    mapped = [part for part in parts if part.transform is not None]
    whole = replace(whole, parts=tuple(parts))
    if not mapped:
        return replace(whole, transform=None, notes=(f"{whole.raw} is not mapped: nothing in it is",))
    if whole.kind == RECORD:
        avro = {"type": RECORD, "name": whole.type["name"], "fields": [part.avro for part in mapped]}
        fields = {part.name: part.transform for part in mapped}
        return replace(whole, type=avro, transform={"transform": "record", "fields": fields})
    [element] = mapped
    of = {"path": whole.path, "of": element.transform}
    if whole.kind == ARRAY:
        return replace(whole, type={"type": ARRAY, "items": element.type}, transform={"transform": "list", **of})
    return replace(whole, type={"type": MAP, "values": element.type}, transform={"transform": "map", **of})


def with_type_names(fields: Sequence[FieldGuess], root: str) -> list[FieldGuess]:
    """The same fields, each record and enum under a name of its own; `root` is the name of the event."""
    seen = Counter([root])

    def unique(name: str) -> str:
        seen[name] += 1
        return name if seen[name] == 1 else unique(f"{name}_{seen[name]}")

    def named(field: FieldGuess, above: str) -> FieldGuess:
        stem = above + "".join(part.capitalize() for part in field.name.split("_"))
        if field.kind == "enum":
            return replace(field, type=field.type | {"name": unique(f"{stem}Value")})
        if not field.parts:
            return field
        if field.kind == RECORD:
            whole = replace(field, type={"name": unique(root + stem)})
            return of_parts(whole, [named(part, f"{stem}_") for part in field.parts])
        return of_parts(field, [named(part, above) for part in field.parts])

    return [named(field, "") for field in fields]


def named_apart(fields: Sequence[FieldGuess]) -> list[FieldGuess]:
    """The fields of one record, a second one of a name with its number."""
    taken, result = {field.name for field in fields}, list[FieldGuess]()
    for field in fields:
        name, number = field.name, 1
        while any(name == other.name for other in result) or (number > 1 and name in taken):
            number += 1
            name = f"{field.name}_{number}"
        note = () if number == 1 else (f"{name} is {field.raw}: another field has the name {field.name}",)
        result.append(replace(field, name=name, notes=(*field.notes, *note)))
    return result


def labels(value: Any, label: str = "") -> Iterator[str]:
    """The label of each field and element within a raw value."""
    if isinstance(value, dict):
        for name, part in value.items():
            inner = _Where((), label).field(name).label
            yield from (inner, *labels(part, inner))
        yield f"{label}.*"
        for part in value.values():
            yield from labels(part, f"{label}.*")
    elif isinstance(value, list):
        yield f"{label}[]"
        for part in value:
            yield from labels(part, f"{label}[]")


def _fields(objects: Sequence[Mapping[str, Any]], at: _Where, said: Said) -> list[FieldGuess]:
    names = dict.fromkeys(name for each in objects for name in each)
    return named_apart(
        [_field([each[n] for each in objects if n in each], len(objects), at.field(n), said) for n in names]
    )


def _field(values: Sequence[Any], holders: int, at: _Where, said: Said) -> FieldGuess:
    """The field whose `values` are those of so many records or elements that could have one."""
    present = [value for value in values if not _is_nothing(value)]
    nothing = FieldGuess(field_name(at.steps[-1:]), at.path or at.label, "string", "string", None, True, label=at.label)
    if at.path is None:
        return nothing.not_mapped("no path has this name")
    if at.level > MOST_LEVELS:
        return nothing.not_mapped(f"it is more than {MOST_LEVELS} levels deep")
    if len(kinds := {_kind(value) for value in present}) > 1:
        return nothing.not_mapped(f"different records have different types there: {', '.join(sorted(kinds))}")
    optional = len(present) < holders
    if kinds == {"object"}:
        if _is_map(present):
            given = [value for value in values if isinstance(value, dict)]
            return _map(replace(nothing, optional=len(given) < holders), given, at, said)
        return _record(replace(nothing, optional=optional), present, at, said)
    if kinds == {"list"}:
        return _array(replace(nothing, optional=optional), present, at, said)
    observed, kind = ObservedField(at.steps[-1:], present), said.types.get(at.label, "")
    return guess(at.path, observed, optional, kind=kind, zone=said.zone, label=at.label)


def _record(whole: FieldGuess, objects: Sequence[dict[str, Any]], at: _Where, said: Said) -> FieldGuess:
    return of_parts(replace(whole, kind=RECORD, type={"name": ""}), _fields(objects, at, said))


def _array(whole: FieldGuess, lists: Sequence[list[Any]], at: _Where, said: Said) -> FieldGuess:
    note = f"{whole.name} is an array: {whole.raw} has lists"
    elements = [element for each in lists for element in each]
    if not elements:
        return whole.not_mapped("its lists are empty")
    return _of_elements(replace(whole, kind=ARRAY, notes=(note,)), elements, at.element("[]"), said)


def _map(whole: FieldGuess, objects: Sequence[dict[str, Any]], at: _Where, said: Said) -> FieldGuess:
    names = list(dict.fromkeys(name for each in objects for name in each))
    note = f"{whole.name} is a map: the names in {whole.raw} are data, such as {', '.join(names[:2])}"
    elements = [element for each in objects for element in each.values()]
    return _of_elements(replace(whole, kind=MAP, notes=(note,)), elements, at.element(".*"), said)


def _of_elements(whole: FieldGuess, elements: Sequence[Any], at: _Where, said: Said) -> FieldGuess:
    kinds = {_kind(element) for element in elements}
    if at.level > MOST_LEVELS:
        return whole.not_mapped(f"it is more than {MOST_LEVELS} levels deep")
    if any(element is None or (isinstance(element, str) and not element.strip(" ")) for element in elements):
        return whole.not_mapped("some of its elements are null or blank")
    if len(kinds) > 1:
        return whole.not_mapped(f"its elements have different types: {', '.join(sorted(kinds))}")
    element = replace(whole, path=".", label=at.label, optional=False, notes=())
    if kinds == {"value"}:
        one = guess_element(whole.name, elements, at.label, kind=said.types.get(at.label, ""))
    elif kinds == {"list"}:
        one = _array(element, elements, at, said)
    else:
        one = (_map if _is_map(elements) else _record)(element, elements, at, said)
    return of_parts(whole, [one])


def _kind(value: Any) -> str:
    return "object" if isinstance(value, dict) else "list" if isinstance(value, list) else "value"


def _is_nothing(value: Any) -> bool:
    """Whether a mapping finds nothing in it: null, a blank text, an object of these."""
    if isinstance(value, dict):
        return all(map(_is_nothing, value.values()))
    return value is None or (isinstance(value, str) and not value.strip(" "))


def _is_map(objects: Sequence[dict[str, Any]]) -> bool:
    """Whether the names are data: each looks like an id, or few objects have one of many."""
    names = Counter(name for each in objects for name in each)
    if names and all(map(_ID_NAME.fullmatch, names)):
        return True
    kinds = {_kind(value) for each in objects for value in each.values()}
    return len(names) >= _MANY_NAMES and len(kinds) == 1 and max(names.values()) * 2 < len(objects)
