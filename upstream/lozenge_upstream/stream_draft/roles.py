"""Which raw fields are the time of an event, its id and its keys. What several fields could be, a person has to say."""

from collections.abc import Iterable, Mapping

from lozenge.errors import PROBLEM, UsageError
from lozenge_upstream.stream_draft.field_guess import field_name
from lozenge_upstream.stream_draft.raw_records import ObservedField
from lozenge_upstream.stream_draft.time_forms import TimeForm, is_time_name, time_form

_OWN_IDS = ("event_id", "id", "message_id", "transaction_id", "txn_id", "uuid")
"""Names under which sources usually have the id of a record."""
NO_ID = ("-", "none")
"""What a person gives as the id of records that have none."""


def resolved(given: str, found: Mapping[str, ObservedField], option: str) -> str:
    """The path of the raw field that a person names by its path or by its name in the event; raises UsageError."""
    if given in found:
        return given
    named = [path for path, of in found.items() if field_name(of.steps) == given]
    if len(named) == 1:
        return named[0]
    what = f"{' and '.join(named)} have the name {given}" if named else f"the records have no field {given}"
    raise UsageError(f"drafting a stream: {option}: {what}", hint=f"they have {', '.join(found)}")


def refuse_unknown(found: Mapping[str, ObservedField], given: Mapping[str, Iterable[str]]) -> None:
    """Raises UsageError with every name that leads to no field, of those given by each option."""
    problems = []
    for option, names in given.items():
        for name in names:
            try:
                resolved(name, found, option)
            except UsageError as error:
                problems.append(error)
    if len(problems) == 1:
        raise problems[0]
    if problems:
        lines = [f"{PROBLEM}{problem.message.removeprefix('drafting a stream: ')}" for problem in problems]
        raise UsageError("\n".join(["drafting a stream: several names", *lines]), hint=problems[0].hint)


def event_time(found: Mapping[str, ObservedField], count: int, given: str, zone: str) -> tuple[str, TimeForm]:
    """The path of the event's time and its form. `count` is the number of records. Raises UsageError."""
    if given:
        path = resolved(given, found, "--time")
        form = time_form(found[path].values)
        if form is None:
            has = ", ".join(map(str, found[path].values[:3])) or "no value"
            raise UsageError(
                f"drafting a stream: {path} is no time in ISO 8601 and no epoch: it has {has}",
                hint="name another field by --time; docs/mappings.md has the transforms for other forms",
            )
    else:
        path, form = _only_time(found, count)
    if form.is_local and not zone:
        raise UsageError(
            f"drafting a stream: the times of {path} have no offset, such as {found[path].values[0]}",
            hint="say where they are read: --zone UTC, --zone Europe/Berlin or --zone +02:00",
        )
    return path, form


def _only_time(found: Mapping[str, ObservedField], count: int) -> tuple[str, TimeForm]:
    forms = {path: time_form(of.values) for path, of in found.items() if len(of.values) == count}
    times = {
        path: form
        for path, form in forms.items()
        if form is not None and (isinstance(found[path].values[0], str) or is_time_name(field_name(found[path].steps)))
    }
    if len(times) == 1:
        return next(iter(times.items()))
    what = f"{_several(times)} could each be the time of an event" if times else "no field has a time in every record"
    raise UsageError(f"drafting a stream: {what}", hint=f"name one: --time {next(iter(times), 'FIELD')}")


def own_id(found: Mapping[str, ObservedField], count: int, given: str | None, keys: Iterable[str]) -> str | None:
    """The path of the source's own id of a record; None without one.

    `given` is None where nobody says. The fields that are `keys` are of an entity, and so is an id within an object.
    """
    if given is not None:
        return None if given in NO_ID else resolved(given, found, "--id")
    ids = [
        path
        for path, of in found.items()
        if field_name(of.steps) in (*_OWN_IDS, "source_event_id") and path not in keys and _names_each(of, count)
    ]
    if len(ids) > 1:
        raise UsageError(
            f"drafting a stream: {_several(ids)} could each be the id of a record",
            hint=f"name one: --id {ids[0]}, or --id none",
        )
    return ids[0] if ids else None


def keys(
    found: Mapping[str, ObservedField], count: int, given: Mapping[str, str], taken: Iterable[str]
) -> dict[str, str]:
    """The path of each key of the stream, the first keying its topic; `taken` are the fields of time and id.

    Raises UsageError.
    """
    if given:
        return {name: resolved(field, found, "--key") for name, field in given.items()}
    candidates = {
        path: name.removesuffix("_id")
        for path, of in found.items()
        if path not in {*taken}
        and (name := field_name(of.steps)).endswith("_id")
        and len(of.values) == count
        and all(isinstance(value, str | int) and not isinstance(value, bool) for value in of.values)
    }
    if len(candidates) == 1:
        return {name: path for path, name in candidates.items()}
    what = (
        f"{_several(candidates)} could each key its events" if candidates else "no field names what its events are of"
    )
    example = next(((name, path) for path, name in candidates.items()), ("user", "FIELD"))
    raise UsageError(
        f"drafting a stream: {what}",
        hint=f"name one or more, the first keys the topic: --key {example[0]}={example[1]}",
    )


def _names_each(of: ObservedField, count: int) -> bool:
    texts = [str(value) for value in of.values if isinstance(value, str | int) and not isinstance(value, bool)]
    return len({*texts}) == len(of.values) == count


def _several(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
