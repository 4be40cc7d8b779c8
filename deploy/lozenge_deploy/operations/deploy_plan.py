"""What a deployment is to change, worked out and refused before anything does."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lozenge.contracts import topics
from lozenge.errors import UsageError
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics, partitions
from lozenge_deploy.control.client import Control
from lozenge_deploy.control.records import DeploymentSpec, Goal
from lozenge_deploy.operations import scaling, state_migration, throttle
from lozenge_deploy.operations.release_diff import GOES_ON, Rows, differences, settings_rows
from lozenge_deploy.releases import detector_process
from lozenge_deploy.releases.build import digest_with_tests, parts_of
from lozenge_deploy.releases.environments import environment
from lozenge_deploy.releases.release import Built, Release, described
from lozenge_deploy.releases.release_store import Releases


@dataclass(frozen=True)
class Candidate:
    """A folder that may be deployed as `release`, beside what is deployed now (None: nothing).

    `release` has its number already, and is kept only by `desired`; `before` is what it falls back to, and
    `refusal` why it cannot be deployed so.
    """

    kafka: KafkaSettings
    built: Built
    release: Release
    now: DeploymentSpec | None
    release_now: Release | None
    before: DeploymentSpec | None
    state: str
    settings: Mapping[str, Any]
    refusal: UsageError | None

    def changes(self) -> Rows:
        """What differs, and what becomes of offsets and state: rows of what, now, then."""
        first = "newest" if self.release.declaration.guarantee == "at-most-once" else "earliest retained"
        offsets = f"from the {first} event on" if self.release_now is None else GOES_ON
        rows = [
            *differences(self.release_now, self.release),
            *settings_rows(self.now.settings if self.now else {}, self.settings),
            *throttle.rows(self.now, self._left_behind, self.release),
            {"what": "offsets", "now": None, "then": offsets},
        ]
        memory = state_migration.consequence(self.release_now, self.release, self.state)
        if self.refusal is not None:
            memory = f"{self.state}: REFUSED"
        return [*rows, {"what": "state", "now": None, "then": memory}] if memory else rows

    def desired(self, *, watch: float, message: str, by: str) -> DeploymentSpec:
        """Keeps the release, made by `by`, and makes the topics that it writes; what to wish for.

        Raises `refusal`; BrokerUnavailable.
        """
        if self.refusal is not None:
            raise self.refusal
        ensure_topics(self.kafka, topics.detector_topics(self.release.detector))
        release = Releases(self.kafka).add(self.built, by=by)
        change: dict[str, Any] = {"release": release.name, "settings": dict(self.settings), "state": self.state}
        change |= {"goal": Goal.RUNNING, "watch": watch, "what": "deploy", "message": message, "undoes": ""}
        change |= self._left_behind
        if self.now is None:
            return DeploymentSpec(detector=release.detector, revision="", **change)
        # the same code with another memory is another process
        again = release.name == self.now.release and self.state != "keep"
        return self.now.but(**change, before=self.before, restart=self.now.restart + again)

    @property
    def _left_behind(self) -> dict[str, None]:
        return throttle.left_behind(self.now, self.release_now, self.release)


def proof_of(folder: Path, python: Path) -> Path:
    """The file that says, once it is there, that the tests in `folder` have passed for this code on this machine."""
    return python.parents[1] / f"tested-{digest_with_tests(folder)}"


def prepare(
    folder: Path, kafka: KafkaSettings, control: Control, *, state: str | None, settings: Mapping[str, Any]
) -> Candidate:
    """Builds and tests `folder`, which must be sound; raises what is wrong with it, before anything has changed.

    A folder whose tests have passed on this machine as it is, is not tested again. `settings` come on top of those
    that hold now, as far as the new release knows them. What becomes of the state is told against the release that is
    live, which need not be the one that is wanted.
    """
    name = folder.name
    now, live = control.desired(name), control.live_release(name)
    parts = parts_of(folder)
    python = environment(parts)
    earlier = Releases(kafka).of(name)
    known = next((release for release in earlier if release.digest == parts.digest), None)
    proof = proof_of(folder, python)
    with ExitStack() as testing:
        passed = testing.enter_context(detector_process.tests_of(folder, python)) if not proof.exists() else None
        built = described(parts, python)
        declaration = built.description.declaration
        source = topics.events_by(declaration.key)
        if source not in partitions(kafka):
            raise UsageError(
                f"deploying {name}: it reads {source}, which does not exist",
                hint=f"let upstream write it: LOZENGE_UPSTREAM_REKEYS='[\"{declaration.key}\"]', then deploy again",
            )
        if passed is not None:
            passed()
            proof.touch()
    release = known or built.numbered(earlier[-1].number + 1 if earlier else 1, by="")
    present = next((release for release in earlier if now is not None and release.name == (live or now.release)), None)
    policy = state or declaration.state
    refusal = state_migration.refused(present, release, policy)
    if now is not None and present is not None:
        refusal = refusal or scaling.refused(release, now.instances, policy)
    kept = {key: value for key, value in now.settings.items() if key in release.settings} if now is not None else {}
    overrides = {**kept, **settings}
    detector_process.try_settings(name, python, overrides)
    before = None
    if now is not None and present is not None:
        before = control.fallback(now)
        if before.release == present.name:
            before = before.but(state=state_migration.way_back(release, present))
    return Candidate(kafka, built, release, now, present, before, policy if present else "keep", overrides, refusal)
