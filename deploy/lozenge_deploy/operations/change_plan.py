"""Changes to what is deployed already: back to an earlier release, or other settings and resources for the present one.

Both are worked out and tried on the release's own code before anything changes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lozenge.durations import duration
from lozenge.errors import UsageError
from lozenge.kafka.settings import KafkaSettings
from lozenge_deploy.control.records import DeploymentSpec, HistoryEvent
from lozenge_deploy.operations import scaling, state_migration, throttle
from lozenge_deploy.operations.release_diff import GOES_ON, Rows, differences, settings_rows
from lozenge_deploy.releases import detector_process
from lozenge_deploy.releases.release_store import Releases, environment_for


def back(
    kafka: KafkaSettings,
    present: DeploymentSpec,
    history: Sequence[HistoryEvent],
    *,
    to: str | None,
    state: str | None,
    message: str,
) -> tuple[DeploymentSpec, Rows]:
    """What to wish for to go back `to` a release, or else to the one that was live before; and what that changes.

    Settings that the earlier release does not know are dropped. Raises UsageError if there is nothing to go back
    to, or its state policy is refused.
    """
    releases, name = Releases(kafka), present.detector
    to = to or _lived_before(present, history)
    then, now = releases.get(name, to), releases.get(name, present.release)
    if then.name == now.name:
        raise UsageError(f"rolling {name} back: {to} is what is wanted now", hint=f"`lozenge history {name}`")
    policy = state or state_migration.way_back(now, then)
    if refusal := state_migration.refused(now, then, policy) or scaling.refused(then, present.instances, policy):
        raise refusal
    settings = {key: value for key, value in present.settings.items() if key in then.settings}
    detector_process.try_settings(name, environment_for(then, releases), settings)
    wanted = present.but(
        release=then.name,
        goal="running",
        settings=settings,
        state=policy,
        what="rollback",
        message=message,
        undoes="",
        before=None,
        **(left := throttle.left_behind(present, now, then)),
    )
    memory = state_migration.consequence(now, then, policy)
    rows = [
        *differences(now, then),
        *settings_rows(present.settings, settings),
        *throttle.rows(present, left, then),
    ]
    rows.append({"what": "offsets", "now": None, "then": GOES_ON})
    return wanted, [*rows, {"what": "state", "now": None, "then": memory}] if memory else rows


def resettle(
    kafka: KafkaSettings,
    present: DeploymentSpec,
    settings: Mapping[str, Any],
    resources: Mapping[str, Any],
    rate: int | None = None,
) -> tuple[dict[str, Any], Rows]:
    """The fields of a desired state that change with `settings` and `resources`; and rows of what, now, then.

    None in `settings` is the default again; `rate`, in events a second, becomes a `max_batch`. Raises ConfigError.
    """
    releases = Releases(kafka)
    release = releases.get(present.detector, present.release)
    values = {name: v for name, v in {**present.settings, **settings}.items() if v is not None}
    detector_process.try_settings(present.detector, environment_for(release, releases), values)
    given = dict(resources)
    if refusal := throttle.refused(release, {**given, "rate": rate}):
        raise refusal
    if rate is not None:
        trigger = duration(given["trigger"]) if "trigger" in given else present.trigger or release.declaration.trigger
        given["max_batch"] = max(1, int(rate * trigger.total_seconds()))
    present.but(**given)  # is refused here, if at all
    declared = release.declaration.model_dump(mode="json")
    declared |= declared["resources"]
    now = present.model_dump(mode="json")
    rows = [{"what": name, "now": now[name] or declared[name], "then": value} for name, value in given.items()]
    return {"settings": values, **given}, [
        *settings_rows(release.settings | present.settings, release.settings | values),
        *(row for row in rows if row["now"] != row["then"]),
    ]


def _lived_before(present: DeploymentSpec, history: Sequence[HistoryEvent]) -> str:
    """The release that was live and good before the present one; raises UsageError if none ever was."""
    fates = {h.release: h.what for h in history if h.what in ("live", "rolled back")}
    lived = [h.release for h in history if h.what == "live" and h.release != present.release]
    lived = [release for release in lived if fates[release] == "live"]
    if not lived:
        raise UsageError(
            f"rolling {present.detector} back: no other release has ever been live",
            hint=f"`lozenge history {present.detector}` tells what was; --to names a release",
        )
    return lived[-1]
