"""The draft of a stream as values: which raw field becomes which field of its events, and what was guessed."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lozenge.errors import UsageError
from lozenge_upstream.stream_draft import roles
from lozenge_upstream.stream_draft.field_guess import (
    KINDS,
    FieldGuess,
    as_key,
    as_plain,
    field_name,
    guess,
    guess_list,
    in_zone,
)
from lozenge_upstream.stream_draft.raw_records import ObservedField, RawText, observed, path_of


@dataclass(frozen=True)
class DraftRequest:
    """What a person says of the stream; the records say the rest.

    `own_id` is None where nobody says, and "none" for none.
    """

    name: str
    source: str
    topic: str
    owner: str
    keys: Mapping[str, str]
    time: str = ""
    own_id: str | None = None
    types: Mapping[str, str] | None = None
    zone: str = ""


@dataclass(frozen=True)
class StreamDraft:
    """What the files of a drafted stream say. `keys` are the names and fields of its keys, `notes` what was guessed."""

    request: DraftRequest
    records: int
    time: dict[str, Any]
    own_id: str | None
    keys: Mapping[str, str]
    fields: tuple[FieldGuess, ...]
    notes: tuple[str, ...]

    @property
    def mapped(self) -> list[FieldGuess]:
        """The fields of its events."""
        return [field for field in self.fields if field.transform is not None]

    @property
    def tokens(self) -> list[FieldGuess]:
        """The fields that hold tokens of card numbers."""
        return [field for field in self.mapped if field.kind == "token"]

    @property
    def said(self) -> list[str]:
        """Everything that was guessed, for people."""
        return [*self.notes, *(note for field in self.fields for note in field.notes)]


def drafted(request: DraftRequest, records: list[RawText]) -> StreamDraft:
    """The draft that the records suggest; raises UsageError where a person has to say more."""
    found, count = observed(records), len(records)
    time, form = roles.event_time(found, count, request.time, request.zone)
    named = [roles.resolved(field, found, "--key") for field in request.keys.values()]
    own_id = roles.own_id(found, count, request.own_id, named)
    keys = roles.keys(found, count, request.keys, [time, *([own_id] if own_id else [])])
    types = _types(request, found)
    fields = [
        _field(path, of, records, types.get(path, ""), request.zone)
        for path, of in _leaves(found).items()
        if path in keys.values() or path not in (time, own_id)
    ]
    fields = [as_key(each, found[each.path].values) if each.path in keys.values() else each for each in fields]
    first = next(iter(keys.values()))
    fields = [replace(each, optional=False) if each.path == first else each for each in _named_apart(fields)]
    by_path = {field.path: field for field in fields}
    for name, path in keys.items():
        if path not in by_path or by_path[path].transform is None or by_path[path].kind not in ("string", "token"):
            raise UsageError(
                f"drafting a stream: the key {name}: {path} is no text", hint="name another field by --key"
            )
    spec = {"transform": form.transform["transform"], "path": time, **form.transform}
    spec |= in_zone(request.zone) if form.is_local else {}
    notes = [f"event_time is {time}: {form.words}" + (f", read in {request.zone}" if form.is_local else "")]
    notes.append(
        f"the id of a record is {own_id}: an event with an equal one is a repeat"
        if own_id
        else "no field is the id of a record: one that comes twice is two events"
    )
    notes += [
        f"the key {name} is {by_path[path].name}" + ("" if at else ", which keys the topic")
        for at, (name, path) in enumerate(keys.items())
    ]
    return StreamDraft(
        request,
        count,
        spec,
        own_id,
        {name: by_path[path].name for name, path in keys.items()},
        tuple(fields),
        tuple(notes),
    )


def revised(draft: StreamDraft, problems: Iterable[str], records: list[RawText]) -> StreamDraft:
    """The draft after its mapping has refused records for `problems`, each a kind and a field: `future:valid_until`.

    Fields that are required of an event stay as they are.
    """
    found = observed(records)
    kinds = {field: kind for kind, _, field in (problem.partition(":") for problem in problems) if kind != "missing"}

    def one(field: FieldGuess) -> FieldGuess:
        kind = kinds.get(field.name)
        if kind is None or field.transform is None:
            return field
        if kind == "pan" and field.kind == "string" and "card_numbers" not in field.transform:
            spec = field.transform | {"card_numbers": "mask"}
            note = f"card numbers in {field.name} are masked: some records have one"
            return replace(field, transform=spec, notes=(*field.notes, note))
        if field.name in draft.keys.values():
            return field
        if field.kind == "timestamp":
            plain = as_plain(field, found[field.path].values)
            note = f"{field.name} is a {plain.kind}: some of its times are no times of an event ({kind})"
            return replace(plain, notes=(note,))
        return field.not_mapped(f"it has values that a {field.kind} does not take ({kind})")

    return replace(draft, fields=tuple(map(one, draft.fields)))


def _leaves(found: Mapping[str, ObservedField]) -> dict[str, ObservedField]:
    """The fields that are no objects, without those within one that is something else in other records."""
    mixed = [of.steps for of in found.values() if "object" in of.kinds and len(of.kinds) > 1]
    within = [path for path, of in found.items() if any(of.steps[: len(above)] == above != of.steps for above in mixed)]
    return {path: of for path, of in found.items() if path not in within and of.kinds != {"object"}}


def _types(request: DraftRequest, found: Mapping[str, ObservedField]) -> dict[str, str]:
    types = {roles.resolved(field, found, "--type"): kind for field, kind in (request.types or {}).items()}
    if unknown := sorted({*types.values()} - {*KINDS}):
        raise UsageError(
            f"drafting a stream: --type: there is no type {', '.join(unknown)}", hint=f"take {', '.join(KINDS)}"
        )
    return types


def _field(path: str, of: ObservedField, records: Sequence[RawText], kind: str, zone: str) -> FieldGuess:
    optional = len(of.values) < len(records)
    if path_of(of.steps) is None:
        nothing = FieldGuess(field_name(of.steps), path, "string", "string", None, optional)
        return nothing.not_mapped("no path has this name")
    if len(of.kinds) > 1:
        nothing = FieldGuess(field_name(of.steps), path, "string", "string", None, optional)
        return nothing.not_mapped(f"different records have different types there: {', '.join(sorted(of.kinds))}")
    if "list" in of.kinds:
        return guess_list(path, of, len(of.lists) < len(records))
    return guess(path, of, optional, kind=kind, zone=zone)


def _named_apart(fields: list[FieldGuess]) -> list[FieldGuess]:
    """The fields, a second one of a name with its number."""
    seen, result = Counter[str](), list[FieldGuess]()
    for field in fields:
        seen[field.name] += 1
        number = seen[field.name]
        name = field.name if number == 1 else f"{field.name}_{number}"
        note = () if number == 1 else (f"{name} is {field.path}: another field has the name {field.name}",)
        result.append(replace(field, name=name, notes=(*field.notes, *note)))
    return result
