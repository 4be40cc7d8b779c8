"""The plan of a deployment: what it changes, or why it is refused, before anything changes."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from lozenge.contracts.topics import reference_list
from lozenge.detector.tables.declared_table import lists_of
from lozenge.errors import UsageError
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge_deploy.control.client import Control
from lozenge_deploy.control.records import DeploymentSpec, Goal
from lozenge_deploy.operations import scaling, state_migration, throttle
from lozenge_deploy.operations.input_check import deployed_by, require_input
from lozenge_deploy.operations.release_diff import (
    RESUMES,
    Rows,
    differences,
    offsets_row,
    readers_row,
    settings_rows,
    state_row,
    unchecked_row,
)
from lozenge_deploy.releases import detector_process
from lozenge_deploy.releases.alert_readers import readers_of
from lozenge_deploy.releases.build import parts_of
from lozenge_deploy.releases.environments import environment
from lozenge_deploy.releases.release import Built, Release, described
from lozenge_deploy.releases.release_store import Releases
from lozenge_deploy.releases.test_run import LIMIT_SECONDS, proof_of, running_tests


@dataclass(frozen=True)
class DeployPlan:
    """The deployment of a folder as `release`, compared with what is deployed (`current`; None: nothing).

    `release` has its number already; `commit` stores it. `before` is what a rollback restores. `refusal` is why the
    folder cannot be deployed so, `unchecked` why the job alone can check the settings. `losing` are the detectors that
    read its alerts by another key, and will find none.
    """

    kafka: KafkaSettings
    built: Built
    release: Release
    current: DeploymentSpec | None
    current_release: Release | None
    before: DeploymentSpec | None
    state: str
    settings: Mapping[str, Any]
    refusal: UsageError | None
    unchecked: str = ""
    losing: tuple[str, ...] = ()

    def changes(self) -> Rows:
        """The changes as rows of field, current, new; also what happens to offsets and state."""
        first = "newest" if self.release.declaration.guarantee == "at-most-once" else "earliest retained"
        state = state_migration.consequence(self.current_release, self.release, self.state)
        if self.refusal is not None:
            state = f"{self.state}: REFUSED"
        return [
            *differences(self.current_release, self.release),
            *settings_rows(self.current.settings if self.current else {}, self.settings),
            *unchecked_row(self.unchecked),
            *throttle.rows(self.current, self._reset_by_mode, self.release),
            offsets_row(f"starts at the {first} event" if self.current_release is None else RESUMES),
            *state_row(state),
            *readers_row(self.losing, f"skip its alerts, which are by {self.release.key} now, until they declare it"),
        ]

    def commit(self, *, watch: float, message: str, by: str) -> DeploymentSpec:
        """Stores the release as made by `by`, creates its topics and lists, and returns the spec to apply.

        Raises `refusal`; BrokerUnavailable.
        """
        if self.refusal is not None:
            raise self.refusal
        topics = self.kafka.topics
        lists = map(partial(reference_list, topics), lists_of(self.release.declaration.tables))
        ensure_topics(self.kafka, [*topics.detector(self.release.detector).contracts(), *lists])
        release = Releases(self.kafka).add(self.built, by=by)
        change: dict[str, Any] = {"release": release.name, "settings": dict(self.settings), "state": self.state}
        change |= {"goal": Goal.RUNNING, "watch": watch, "what": "deploy", "message": message, "undoes": ""}
        change |= self._reset_by_mode
        if self.current is None:
            return DeploymentSpec(detector=release.detector, revision="", **change)
        # the same code with other state needs another process
        again = release.name == self.current.release and self.state != "keep"
        return self.current.updated(**change, before=self.before, restart=self.current.restart + again)

    @property
    def _reset_by_mode(self) -> dict[str, None]:
        return throttle.reset_by_mode(self.current, self.current_release, self.release)


def prepare(
    folder: Path,
    kafka: KafkaSettings,
    control: Control,
    *,
    state: str | None,
    settings: Mapping[str, Any],
    test_limit: float = LIMIT_SECONDS,
) -> DeployPlan:
    """Builds and tests `folder`, which has passed the lint; raises its errors before anything has changed.

    What is quick to know is reported before the tests end, which may take `test_limit` seconds. Tests that have passed
    for this code on this machine do not run again. `settings` override the current ones, as
    far as the new release has them. The state is compared with the live release, which may differ from the deployed
    one.
    """
    name = folder.name
    current, live = control.spec(name), control.live_release(name)
    parts = parts_of(folder)
    python = environment(parts)
    earlier = Releases(kafka).of(name)
    known = next((release for release in earlier if release.digest == parts.digest), None)
    proof = proof_of(folder, python)
    with ExitStack() as testing:
        tests = running_tests(folder, python, test_limit)
        passed = testing.enter_context(tests) if not proof.exists() else None
        built = described(parts, python)
        require_input(built.description, kafka, deployed_by(kafka, control.spec))
        release = known or built.numbered(earlier[-1].number + 1 if earlier else 1, by="")
        present = None
        if current is not None:
            present = next((release for release in earlier if release.name == (live or current.release)), None)
        policy = state or release.declaration.state
        refusal = state_migration.refused(present, release, policy)
        if current is not None and present is not None:
            refusal = refusal or scaling.refused(release, current.instances, kafka.partitions, policy)
        known_settings = current.settings.items() if current is not None else ()
        overrides = {**{key: value for key, value in known_settings if key in release.settings}, **settings}
        unchecked = detector_process.try_settings(name, python, overrides)
        if passed is not None and refusal is None:
            passed()
            proof.touch()
    before = None
    if current is not None and present is not None:
        before = control.fallback(current)
        if before.release == present.name:
            before = before.updated(state=state_migration.rollback_policy(release, present))
    return DeployPlan(
        kafka=kafka,
        built=built,
        release=release,
        current=current,
        current_release=present,
        before=before,
        state=policy if present else "keep",
        settings=overrides,
        refusal=refusal,
        unchecked=unchecked,
        losing=_losing(kafka, present, release),
    )


def _losing(kafka: KafkaSettings, present: Release | None, new: Release) -> tuple[str, ...]:
    """The detectors that read its alerts, if these are by another key than before."""
    if present is None or new.key == present.key:
        return ()
    return tuple(each.detector for each in readers_of(kafka, new.detector) if each.key != new.key)
