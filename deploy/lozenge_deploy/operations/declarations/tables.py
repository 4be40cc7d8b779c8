"""Tables of the platform before they are released: what is wrong with a declaration, its source, or a change."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lozenge.errors import PROBLEM, LozengeError, UsageError
from lozenge.kafka.settings import KafkaSettings
from lozenge.platform_tables.column_types import column_types, sql_name
from lozenge.platform_tables.definition import PlatformTable
from lozenge.platform_tables.project import table_of
from lozenge.protocol.app_requests import AppRow, AppState
from lozenge_deploy.operations.declarations import apps
from lozenge_deploy.operations.streams.upstream_tools import asked

Readers = Mapping[str, str]
"""The columns that each detector reads of a table, as Spark DDL."""


def look_of(table: PlatformTable, doing: str, kafka: KafkaSettings | None = None) -> dict[str, Any]:
    """What one look at the source of a table finds, `problems` included; raises ConfigError, BrokerUnavailable.

    `kafka` is the platform with the rows to compare with, by default that of this process.
    """
    table.address()  # a variable that is missing is missed here, and not in another process
    declared, variables = table.model_dump_json().encode(), kafka.variables if kafka is not None else None
    found: dict[str, Any] = asked(doing, "lozenge_upstream.tables.check_table", given=declared, variables=variables)
    return found


def require_good(found: Mapping[str, Any], doing: str) -> None:
    """Raises LozengeError with every problem of a look: of a version that is none, or of a source that is away."""
    if found["problems"]:
        lines = [f"{doing}: its source is {found['state']}", *(f"{PROBLEM}{each}" for each in found["problems"])]
        raise LozengeError("\n".join(lines), hint="nothing was written; the last good version stays")


def deployment_of(state: AppState, table: PlatformTable, readers: Readers, reason: str) -> list[AppRow]:
    """Requests this declaration. Raises UsageError if it is in force, or if a deployed detector could not read it."""
    _require_readable(table, readers, f"deploying the table {table.name}")
    return apps.deployment_of(state, table.model_dump(mode="json"), reason)


def rollback_of(
    state: AppState, to: str, readers: Readers, check: Callable[[PlatformTable, str], object]
) -> list[AppRow]:
    """Requests an earlier release that `check` accepts. Raises as `deployment_of` and `check`, and ConfigError."""

    def check_all(table: PlatformTable, doing: str) -> None:
        _require_readable(table, readers, doing)
        check(table, doing)

    return apps.rollback_of(state, to, table_of, check_all)


def _require_readable(table: PlatformTable, readers: Readers, doing: str) -> None:
    if problems := list(unreadable(table, readers)):
        raise UsageError(
            "\n".join([f"{doing}: deployed detectors read what it would not have", *(PROBLEM + p for p in problems)]),
            hint="deploy releases of these detectors that do without it first",
        )


def unreadable(table: PlatformTable, readers: Readers) -> Iterator[str]:
    """What detectors read and the table does not have, or has as another type."""
    have = column_types(table.columns)
    for detector, columns in readers.items():
        for name, kind in column_types(columns).items():
            if name not in have:
                yield f"{detector}: the column {name}"
            elif have[name] != kind:
                yield f"{detector}: {name} as {sql_name(kind)}, and not as {sql_name(have[name])}"
