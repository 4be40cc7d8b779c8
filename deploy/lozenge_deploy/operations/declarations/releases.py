"""Which release a command requests, given what is deployed: the same for all that has a declaration. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from lozenge.errors import UsageError
from lozenge.protocol.declared_releases import AnyState, DeclaredRelease, Deployed, Q, R, ReleaseRequest, name_of

C = TypeVar("C", bound=ReleaseRequest)


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
    state: Deployed[R, Q],
    declaration: Mapping[str, Any],
    words: Words,
    *,
    release: Callable[[int], R],
    request: Callable[[int], Q],
) -> list[R | Q]:
    """Requests the release that has this declaration, or a new one. Raises UsageError if it is requested already."""
    same = [number for number, each in state.releases.items() if each.declaration == declaration]
    if not same:
        number = state.next_number()
        return [release(number), request(number)]
    if state.request is not None and state.request.release == same[-1]:
        raise UsageError(
            f"deploying {words.what}: its folder is {name_of(same[-1])}, which is deployed already",
            hint=f"change {words.file} first; `{words.commands} history {words.name}` lists the releases",
        )
    return [request(same[-1])]


def earlier_release(state: AnyState, to: str, words: Words) -> int:
    """The release that a rollback requests: `to`, such as "r2", or for "" the one before. Raises UsageError."""
    request = deployed(state, "rolling back", words)
    names = {name_of(number): number for number in state.releases}
    if to and to not in names:
        raise UsageError(f"rolling {words.what} back: there is no release {to}", hint=f"name one of {', '.join(names)}")
    earlier = [number for number in state.releases if number < request.release]
    if not to and not earlier:
        raise UsageError(
            f"rolling {words.what} back: {name_of(request.release)} is its first release", hint="--to names another one"
        )
    return names[to] if to else max(earlier)


def deployed(state: Deployed[Any, C], doing: str, words: Words) -> C:
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
