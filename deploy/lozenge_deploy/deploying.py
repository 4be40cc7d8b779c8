"""What a deployment is to change, worked out and refused before anything does."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lozenge import topics
from lozenge.admin import ensure_topics, partitions
from lozenge.errors import UsageError
from lozenge.kafka import KafkaSettings
from lozenge_deploy import own_code, state_policy
from lozenge_deploy.control.client import Control
from lozenge_deploy.control.records import Desired
from lozenge_deploy.differences import Rows, differences, settings_rows
from lozenge_deploy.environments import environment, environment_of
from lozenge_deploy.release import Built, Release, build
from lozenge_deploy.releases import Releases


@dataclass(frozen=True)
class Candidate:
    """A folder that may be deployed as `release`, beside what is deployed now (None: nothing).

    `release` has its number already, and is kept only by `desired`; `refusal` is why it cannot be deployed so.
    """

    kafka: KafkaSettings
    built: Built
    release: Release
    now: Desired | None
    release_now: Release | None
    state: str
    settings: Mapping[str, Any]
    refusal: UsageError | None

    def changes(self) -> Rows:
        """What differs, and what becomes of offsets and state: rows of what, now, then."""
        goes_on = "from the group's offsets on; nothing is judged twice or left out"
        offsets = "from the earliest retained event on" if self.release_now is None else goes_on
        rows = [
            *differences(self.release_now, self.release),
            *settings_rows(self.now.settings if self.now else {}, self.settings),
            {"what": "offsets", "now": None, "then": offsets},
        ]
        memory = state_policy.consequence(self.release_now, self.release, self.state)
        if self.refusal is not None:
            memory = f"{self.state}: REFUSED"
        return [*rows, {"what": "state", "now": None, "then": memory}] if memory else rows

    def desired(self, *, watch: float, message: str, by: str) -> Desired:
        """Keeps the release, made by `by`, and makes the topics that it writes; what to wish for.

        Raises `refusal`; BrokerUnavailable.
        """
        if self.refusal is not None:
            raise self.refusal
        ensure_topics(self.kafka, topics.detector_topics(self.release.detector))
        release = Releases(self.kafka).add(self.built, by=by)
        base: dict[str, Any] = {"detector": release.detector, "revision": "", "before": None}
        if self.now is not None and self.release_now is not None:
            back = state_policy.way_back(release, self.release_now)
            before = self.now.model_copy(update={"before": None, "state": back})
            base = self.now.model_dump(exclude={"before"}) | {"before": before}
            if release.name == self.now.release and self.state != "keep":
                base["restart"] = self.now.restart + 1  # the same code with another memory is another process
        change = {"release": release.name, "goal": "running", "settings": dict(self.settings), "state": self.state}
        told = {"watch": watch, "what": "deploy", "message": message, "undoes": ""}
        return Desired.model_validate(base | change | told)


def prepare(
    folder: Path, kafka: KafkaSettings, control: Control, *, state: str | None, settings: Mapping[str, Any]
) -> Candidate:
    """Builds and tests `folder`, which must be sound; raises what is wrong with it, before anything has changed.

    A folder that has been released already is not tested again. `settings` come on top of those that hold now. What
    becomes of the state is told against the release that is live, which need not be the one that is wanted.
    """
    now, live = control.desired(folder.name), control.live_release(folder.name)
    with own_code.tests_of(folder, environment_of(folder)) as passed:
        built = build(folder)
        declaration = built.description.declaration
        source = topics.events_by(declaration.key)
        if source not in partitions(kafka):
            raise UsageError(
                f"deploying {folder.name}: it reads {source}, which does not exist",
                hint=f"let upstream write it: LOZENGE_UPSTREAM_REKEYS='[\"{declaration.key}\"]', then deploy again",
            )
        earlier = Releases(kafka).of(folder.name)
        release = next((release for release in earlier if release.digest == built.parts.digest), None)
        if release is None:
            passed()
            release = built.numbered(earlier[-1].number + 1 if earlier else 1, by="")
    present = next((release for release in earlier if now is not None and release.name == (live or now.release)), None)
    policy = state or declaration.state
    refusal = state_policy.refused(present, release, policy)
    overrides = {**(now.settings if now is not None else {}), **settings}
    own_code.try_settings(folder.name, environment(built.parts), overrides)
    return Candidate(kafka, built, release, now, present, policy if present else "keep", overrides, refusal)
