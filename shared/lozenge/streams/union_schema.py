"""Avro schemas of several streams as one: the union of their fields, and how a record of each is read into it.

A record of a merged topic is that of its own stream, so its schema says of which stream it is. Each of these schemas
has a reader of its own. All readers have the same fields in the same order: `stream`, and the union, each optional.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lozenge.streams.fields import ARRAY, DECIMAL, ENUM, MAP, RECORD, TEXT, on_the_wire

STREAM = "stream"
"""The field with the name of an event's stream."""
Named = Sequence[tuple[str, Mapping[str, Any]]]
"""Streams by name: the content of the `event.avsc` of each."""
_NAMESPACE = "lozenge.merged"


def union(records: Named) -> dict[str, Any]:
    """The union of their fields as a stream's own schema, with the hints of the first stream that has a field."""
    names = [name for name, _ in records]
    stream = {"name": STREAM, "type": TEXT, "values": names, "example": names[0], "doc": "The stream of the event."}
    fields = [stream, *(_optional(field) for field in _union_fields(records).values())]
    return {
        "type": RECORD,
        "name": "Merged",
        "namespace": "lozenge",
        "doc": f"Of {' and '.join(names)}.",
        "fields": fields,
    }


def reader(records: Named, name: str) -> dict[str, Any]:
    """As what a record of the stream `name` is read: the union, with the stream's own types under their own names.

    Avro reads a field only into a type of the same full name. Types of other streams get a namespace of their own.
    """
    own = dict(records)[name]
    mine = {field["name"]: field for field in own["fields"]}
    fields = [{"name": STREAM, "type": TEXT, "default": name}]
    for field in _union_fields(records).values():
        named = mine.get(field["name"]) or {**field, "type": _renamed(field["type"], f"{_NAMESPACE}.{field['name']}")}
        fields.append(on_the_wire(_optional(named)))
    return {"type": RECORD, "name": own["name"], "namespace": own["namespace"], "fields": fields}


def conflicts(records: Named) -> Iterator[str]:
    """Fields that two of the streams mean differently; each names both."""
    seen = dict[str, tuple[str, Mapping[str, Any]]]()
    for stream, record in records:
        for field in record["fields"]:
            name = field["name"]
            if (before := seen.setdefault(name.lower(), (stream, field)))[0] == stream:
                continue
            first, other = before
            if other["name"] != name:
                yield f"{first} has a field {other['name']} and {stream} has {name}: upper and lower case are one"
            elif (one := _shape(other["type"])) != (two := _shape(field["type"])):
                of_first, of_second = (_words(each) for each in (one, two))
                if of_first == of_second:
                    of_second = f"another {of_second}"
                yield f"{name} is {of_first} in {first} and {of_second} in {stream}: give one of them another name"


def _union_fields(records: Named) -> dict[str, Mapping[str, Any]]:
    found = dict[str, Mapping[str, Any]]()
    for _, record in records:
        for field in record["fields"]:
            found.setdefault(field["name"], field)
    return found


def _optional(field: Mapping[str, Any]) -> dict[str, Any]:
    kind = field["type"]
    return {**field, "type": kind if isinstance(kind, list) else ["null", kind], "default": None}


def _renamed(kind: Any, namespace: str) -> Any:
    """The type with every name of a record or an enum in another namespace."""
    if isinstance(kind, list):
        return [_renamed(each, namespace) for each in kind]
    if not isinstance(kind, dict):
        return kind
    inner = {part: _renamed(kind[part], namespace) for part in ("type", "items", "values") if part in kind}
    if isinstance(kind.get("fields"), list):
        inner["fields"] = [{**each, "type": _renamed(each["type"], namespace)} for each in kind["fields"]]
    named = {"name": str(kind["name"]).rpartition(".")[2], "namespace": namespace} if "name" in kind else {}
    return {**kind, **inner, **named}


def _shape(kind: Any) -> Any:
    """What makes two types one: all of a type but its names and documents, and whether it may be null."""
    if isinstance(kind, list):
        return next(_shape(each) for each in kind if each != "null")
    if not isinstance(kind, dict):
        return (kind,)
    base = kind["type"]
    if isinstance(base, dict | list):
        return _shape(base)
    if base == RECORD:
        return (
            base,
            *((each["name"], isinstance(each["type"], list), _shape(each["type"])) for each in kind["fields"]),
        )
    if kind.get("logicalType") == DECIMAL:
        return (base, DECIMAL, kind["precision"], kind.get("scale", 0))
    parts = [kind["logicalType"]] if "logicalType" in kind else kind.get("symbols", [])
    inner = [_shape(kind[part]) for part in ("items", "values") if part in kind]
    return (base, *parts, *inner)


def _words(shape: Any) -> str:
    """A shape for a person: "decimal(18,4)", "enum", "text"."""
    base, *parts = shape
    if not parts or base in (RECORD, ENUM, ARRAY, MAP):
        return str(base)
    logical, *digits = parts
    return f"{logical}({','.join(map(str, digits))})" if digits else str(logical)
