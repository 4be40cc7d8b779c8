"""Which release a command requests, given what is deployed: the same for all that has a declaration.

Pure but for the clock and the name of the user.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from lozenge.errors import UsageError
from lozenge.process.user_name import user_name
from lozenge.protocol.declared_releases import AnyState, DeclaredRelease, Deployed, Q, R, RowFormat, name_of, now


@dataclass(frozen=True)
class Words:
    """What an owner is called in sentences: "the file source night", its `file`, and its `commands`, "lozenge source".

    `name` is what these commands take.
    """

    what: str
    name: str
    file: str
    commands: str


def deployment_of(
    rows: RowFormat[R, Q], state: Deployed[R, Q], declaration: Mapping[str, Any], reason: str, words: Words
) -> list[R | Q]:
    """Requests the release that has this declaration, or a new one. Raises UsageError if it is requested already."""
    same = [number for number, each in state.releases.items() if each.declaration == declaration]
    if not same:
        number = state.next_number()
        follows = state.request.release if state.request is not None else 0
        new = rows.release(state.name, number, dict(declaration), user_name(), reason, follows=follows)
        return [new, _requested(rows, state, number)]
    if state.request is not None and state.request.release == same[-1]:
        raise UsageError(
            f"deploying {words.what}: its folder is {name_of(same[-1])}, which is deployed already",
            hint=f"change {words.file} first; `{words.commands} history {words.name}` lists the releases",
        )
    return [_requested(rows, state, same[-1])]


def rollback_of(rows: RowFormat[R, Q], state: Deployed[R, Q], to: str, words: Words) -> Q:
    """Requests an earlier release: `to`, such as "r2", or for "" the one that was in force when the present was made.

    Raises UsageError.
    """
    return _requested(rows, state, _earlier_release(state, to, words))


def changed(request: Q, **values: Any) -> Q:
    """The request with other values, made by this user now."""
    return msgspec.structs.replace(request, **values, by=user_name(), at=now())


def _requested(rows: RowFormat[R, Q], state: Deployed[R, Q], release: int) -> Q:
    """A request for a release, which remembers the one before it."""
    request = state.request
    if request is None:
        return rows.request(state.name, release, by=user_name())
    previous = request.release if request.release != release else request.previous
    return changed(request, release=release, previous=previous)


def _earlier_release(state: AnyState, to: str, words: Words) -> int:
    """The release that a rollback requests: `to`, such as "r2", or for "" the one that ran before the present.

    That is not the number before, which may be a release that was rolled back. Raises UsageError.
    """
    request = deployed(state, "rolling back", words)
    names = {name_of(number): number for number in state.releases}
    if to and to not in names:
        raise UsageError(f"rolling {words.what} back: there is no release {to}", hint=f"name one of {', '.join(names)}")
    earlier = [number for number in state.releases if number < request.release]
    if not to and not earlier:
        raise UsageError(
            f"rolling {words.what} back: {name_of(request.release)} is its first release", hint="--to names another one"
        )
    if to:
        return names[to]
    follows = state.release.follows if state.release is not None else 0
    return follows if follows in earlier else max(earlier)


def deployed(state: Deployed[Any, Q], doing: str, words: Words) -> Q:
    """What is requested; raises UsageError if nothing is."""
    if state.request is None:
        raise UsageError(
            f"{doing} {words.what}: it is not deployed",
            hint=f"`{words.commands} deploy {words.name}`; `{words.commands} ls` lists all",
        )
    return state.request


def history_rows(state: AnyState, words: Words, shown: Callable[[DeclaredRelease], Mapping[str, Any]]) -> list[Any]:
    """The releases in a table, the newest first, with what is `shown` of each; raises UsageError if there are none."""
    if not state.releases:
        raise UsageError(
            f"listing the releases of {words.what}: there are none", hint=f"`{words.commands} deploy` makes one"
        )
    current = state.request.release if state.request is not None else 0
    return [
        {
            "release": name_of(number),
            "deployed": "now" if number == current else "",
            "at": release.at.isoformat(timespec="seconds"),
            "by": release.by,
            "reason": release.reason,
            **shown(release),
        }
        for number, release in reversed([*state.releases.items()])
    ]
