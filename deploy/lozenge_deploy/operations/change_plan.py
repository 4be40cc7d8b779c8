"""Plans of changes to a deployed detector: a rollback, or other settings and resources.

Settings are tried with the release's own code before anything changes, wherever its environment can be made. The
running job tries them again before they replace those in force.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lozenge.durations import duration
from lozenge.errors import ToolchainError, UsageError, first_line
from lozenge.kafka.settings import KafkaSettings
from lozenge_deploy.control.records import DeploymentSpec, HistoryEvent
from lozenge_deploy.operations import scaling, sharing_check, state_migration, throttle
from lozenge_deploy.operations.input_check import Deployed, refuse_cycle
from lozenge_deploy.operations.release_diff import (
    RESUMES,
    Rows,
    differences,
    offsets_row,
    settings_rows,
    state_row,
    unchecked_row,
)
from lozenge_deploy.releases import detector_process
from lozenge_deploy.releases.release import Release
from lozenge_deploy.releases.release_store import Releases, environment_for


def plan_rollback(
    kafka: KafkaSettings,
    present: DeploymentSpec,
    history: Sequence[HistoryEvent],
    deployed: Deployed,
    *,
    to: str | None,
    state: str | None,
    message: str,
) -> tuple[DeploymentSpec, Rows]:
    """The spec that rolls back `to` a release, or to the previous live one, and its changes as rows.

    Settings that the earlier release does not have are dropped. Raises UsageError if there is no earlier release, if
    its state policy is refused, or if it closes a cycle of detectors that read each other's alerts.
    """
    releases, name = Releases(kafka), present.detector
    to = to or _previous_live(present, history)
    new, current = releases.get(name, to), releases.get(name, present.release)
    if new.name == current.name:
        raise UsageError(f"rolling {name} back: {to} is deployed already", hint=f"`lozenge history {name}`")
    refuse_cycle(new, deployed)
    policy = state or state_migration.rollback_policy(current, new)
    if refusal := state_migration.refused(current, new, policy) or scaling.refused(
        new, present.instances, kafka.partitions, policy
    ):
        raise refusal
    settings = {key: value for key, value in present.settings.items() if key in new.settings}
    unchecked = _tried(new, releases, settings)
    wanted = present.updated(
        release=new.name,
        goal="running",
        settings=settings,
        state=policy,
        what="rollback",
        message=message,
        undoes="",
        before=None,
        **(reset := throttle.reset_by_mode(present, current, new)),
    )
    return wanted, [
        *differences(current, new),
        *settings_rows(present.settings, settings),
        *unchecked_row(unchecked),
        *throttle.rows(present, reset, new),
        offsets_row(RESUMES),
        *state_row(state_migration.consequence(current, new, policy)),
    ]


def plan_settings(
    kafka: KafkaSettings,
    present: DeploymentSpec,
    settings: Mapping[str, Any],
    resources: Mapping[str, Any],
    rate: int | None = None,
) -> tuple[dict[str, Any], Rows]:
    """The fields of the spec that change with `settings` and `resources`, and the changes as rows.

    None in `settings` restores the default; `rate`, in events per second, becomes a `max_batch`. Raises ConfigError,
    and DetectorError for settings that `detect()` refuses.
    """
    releases = Releases(kafka)
    release = releases.get(present.detector, present.release)
    values = {name: v for name, v in {**present.settings, **settings}.items() if v is not None}
    unchecked = _tried(release, releases, values) if _as_text(values) != _as_text(present.settings) else ""
    given = dict(resources)
    if refusal := throttle.refused(release, {**given, "rate": rate}) or sharing_check.refused(release, present, given):
        raise refusal
    if rate is not None:
        trigger = duration(given["trigger"]) if "trigger" in given else present.trigger or release.declaration.trigger
        given["max_batch"] = max(1, int(rate * trigger.total_seconds()))
    present.updated(**given)  # refuses what is invalid
    declared = release.declaration.model_dump(mode="json")
    declared |= declared["resources"]
    current = present.model_dump(mode="json")
    before, after = (sharing_check.isolation(release, present, each) for each in ({}, given))
    current["isolation"], changed = str(before), dict(given)
    if before is not after:
        changed["isolation"] = str(after)  # with so much memory or so many cores it shares no JVM
    rows = [{"field": n, "current": current[n] or declared[n], "new": value} for n, value in changed.items()]
    return {"settings": values, **given}, [
        *settings_rows(release.settings | present.settings, release.settings | values),
        *unchecked_row(unchecked),
        *(row for row in rows if row["current"] != row["new"]),
    ]


def _tried(release: Release, releases: Releases, settings: Mapping[str, Any]) -> str:
    """Why the job alone can check `settings`, or ""; raises ConfigError and DetectorError if they are refused."""
    if not settings:
        return ""
    try:
        python = environment_for(release, releases)
    except ToolchainError as error:  # a limit can be set from a machine that cannot run the detector
        return first_line(error)
    return detector_process.try_settings(release.detector, python, settings)


def _as_text(settings: Mapping[str, Any]) -> str:
    return json.dumps(settings, sort_keys=True)  # 1 and true are equal in Python


def _previous_live(present: DeploymentSpec, history: Sequence[HistoryEvent]) -> str:
    """The newest other release that was live and not rolled back; raises UsageError if there is none."""
    last_events = {event.release: event.what for event in history if event.what in ("live", "rolled back")}
    others = [event.release for event in history if event.what == "live" and event.release != present.release]
    good = [release for release in others if last_events[release] == "live"]
    if not good:
        raise UsageError(
            f"rolling {present.detector} back: no other release has ever been live",
            hint=f"`lozenge history {present.detector}` lists the releases; --to names one",
        )
    return good[-1]
