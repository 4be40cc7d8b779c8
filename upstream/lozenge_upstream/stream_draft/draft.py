"""The draft of a stream as values: which raw field becomes which field of its events, and what was guessed."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lozenge.errors import UsageError
from lozenge.streams.fields import MAP, RECORD
from lozenge_upstream.stream_draft import roles
from lozenge_upstream.stream_draft.field_guess import KINDS, FieldGuess, as_key, as_plain, guess, in_zone
from lozenge_upstream.stream_draft.nested_guess import (
    Said,
    guess_fields,
    labels,
    named_apart,
    of_parts,
    with_type_names,
)
from lozenge_upstream.stream_draft.raw_records import ObservedField, RawText, observed, path_of
from lozenge_upstream.stream_draft.safe_records import card_names, without_card_names


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

    @property
    def record_name(self) -> str:
        """The name of its events in the schema."""
        return "".join(part.capitalize() for part in self.name.split("_"))


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
    def tokens(self) -> list[str]:
        """The fields that hold tokens of card numbers, and such parts, by the names that lead there."""
        return [name for field in self.mapped for name, leaf in field.leaves() if leaf.kind == "token"]

    @property
    def said(self) -> list[str]:
        """Everything that was guessed, for people."""
        return [*self.notes, *(note for field in self.fields for note in field.all_notes)]


def drafted(request: DraftRequest, records: list[RawText]) -> StreamDraft:
    """The draft that the records suggest; raises UsageError where a person has to say more."""
    named_by_cards = dict.fromkeys(name for record in records for name in card_names(record.value))
    records = [record._replace(value=without_card_names(record.value)) for record in records]
    found, count = observed(records), len(records)
    ids = [request.own_id] if request.own_id is not None and request.own_id not in roles.NO_ID else []
    times = [request.time] if request.time else []
    roles.refuse_unknown(found, {"--time": times, "--id": ids, "--key": request.keys.values()})
    time, form = roles.event_time(found, count, request.time, request.zone)
    named = [roles.resolved(field, found, "--key") for field in request.keys.values()]
    own_id = roles.own_id(found, count, request.own_id, named)
    keys = roles.keys(found, count, request.keys, [time, *([own_id] if own_id else [])])
    types = _types(request, found, records)
    taken = {found[path].steps for path in (time, own_id, *keys.values()) if path is not None}
    others = guess_fields([_without(record.value, taken) for record in records], Said(types, request.zone))
    named_by = {path: name for name, path in reversed(keys.items())}
    of_keys = [
        _key(named_by[path], path, found[path], count, types.get(path, "")) for path in dict.fromkeys(keys.values())
    ]
    of_keys[0] = replace(of_keys[0], optional=False)
    fields = with_type_names(named_apart([*of_keys, *others]), request.record_name)
    by_path = {field.path: field for field in fields}
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
    notes += [f"{name} is not mapped: its name holds a card number" for name in named_by_cards]
    return StreamDraft(
        request,
        count,
        spec,
        own_id,
        {name: by_path[path].name for name, path in keys.items()},
        tuple(fields),
        tuple(notes),
    )


def revised(draft: StreamDraft, problems: Iterable[str]) -> StreamDraft:
    """The draft after its mapping has refused records for `problems`, each a kind and a field: `future:device.until`.

    Fields that are required of an event stay as they are.
    """
    kinds = {field: kind for kind, _, field in (problem.partition(":") for problem in problems) if kind != "missing"}

    def one(field: FieldGuess, name: str) -> FieldGuess:
        kind = kinds.get(name)
        if kind is not None and field.kind == MAP and field.parts and field.parts[0].kind == RECORD:
            return field.not_mapped(f"some of its names are none that a map takes ({kind})")
        if field.parts and field.transform is not None:
            better = tuple(one(part, f"{name}.{part.name}" if field.kind == RECORD else name) for part in field.parts)
            if better != field.parts:
                return of_parts(field, better)
        if kind is None or field.transform is None:
            return field
        if kind == "pan" and field.kind == "string" and "card_numbers" not in field.transform:
            spec = field.transform | {"card_numbers": "mask"}
            note = f"card numbers in {field.name} are masked: some records have one"
            return replace(field, transform=spec, notes=(*field.notes, note))
        if field.name in draft.keys.values():
            return field
        if field.kind == "timestamp":
            plain = as_plain(field, field.values)
            note = f"{field.name} is a {plain.kind}: some of its times are no times of an event ({kind})"
            return replace(plain, notes=(note,))
        return field.not_mapped(f"it has values that a {field.kind} does not take ({kind})")

    return replace(draft, fields=tuple(one(field, field.name) for field in draft.fields))


def _without(value: Mapping[str, Any], taken: Collection[tuple[str, ...]]) -> dict[str, Any]:
    """A raw record without the fields that these names lead to."""
    here = {steps[0] for steps in taken if len(steps) == 1}
    found: dict[str, Any] = {}
    for name, part in value.items():
        below = [steps[1:] for steps in taken if steps[0] == name and len(steps) > 1]
        if name in here:
            continue
        left = _without(part, below) if below and isinstance(part, dict) else part
        if left or not below:
            found[name] = left
    return found


def _types(request: DraftRequest, found: Mapping[str, ObservedField], records: Sequence[RawText]) -> dict[str, str]:
    known = {label for record in records for label in labels(record.value)}
    types = {
        field if field in known else roles.resolved(field, found, "--type"): kind
        for field, kind in (request.types or {}).items()
    }
    if unknown := sorted({*types.values()} - {*KINDS}):
        raise UsageError(
            f"drafting a stream: --type: there is no type {', '.join(unknown)}", hint=f"take {', '.join(KINDS)}"
        )
    return types


def _key(name: str, path: str, of: ObservedField, count: int, kind: str) -> FieldGuess:
    """The field of a key, which is a field of the event wherever the source has it. Raises UsageError."""
    if path_of(of.steps) is not None and of.kinds == {"value"}:
        found = as_key(guess(path, of, len(of.values) < count, kind=kind), of.values)
        if found.transform is not None and found.kind in ("string", "token"):
            return found
    raise UsageError(f"drafting a stream: the key {name}: {path} is no text", hint="name another field by --key")
