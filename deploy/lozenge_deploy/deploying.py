"""What a deployment is to change, worked out and refused before anything does."""

import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Any

from lozenge import topics
from lozenge.admin import ensure_topics, partitions
from lozenge.declaration import Declaration
from lozenge.durations import duration
from lozenge.errors import ConfigError, DetectorError, UsageError
from lozenge.job.state_shape import refusal
from lozenge.kafka import KafkaSettings
from lozenge_deploy.control.records import Desired, Happening
from lozenge_deploy.conventions import problems
from lozenge_deploy.environments import environment, in_environment
from lozenge_deploy.release import Built, Release, build
from lozenge_deploy.releases import Releases, environment_for

RETENTION = "retention.ms"
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Candidate:
    """A folder that may be deployed, beside what is deployed now (None: nothing)."""

    kafka: KafkaSettings
    built: Built
    now: Desired | None
    release_now: Release | None
    known: Release | None
    state: str
    settings: Mapping[str, Any]

    def changes(self) -> Rows:
        """What differs, and what becomes of offsets and state: rows of what, now, then."""
        return [
            *_differences(self.release_now, self.built),
            *_settings_row(self.now, self.settings),
            *self._state_rows(),
        ]

    def release(self) -> Release:
        """The folder as a release, with the topics that it writes; raises UsageError if nobody writes its input."""
        name, declaration = self.built.parts.detector, self.built.description.declaration
        source = topics.events_by(declaration.key)
        if source not in partitions(self.kafka):
            raise UsageError(
                f"deploying {name}: it reads {source}, which does not exist",
                hint=f"let upstream write it: LOZENGE_UPSTREAM_REKEYS='[\"{declaration.key}\"]', then deploy again",
            )
        ensure_topics(self.kafka, topics.detector_topics(name))
        return self.known or Releases(self.kafka).add(self.built, by=_me())

    def desired(self, release: Release, *, watch: float, message: str) -> Desired:
        """What to wish for."""
        before = self.now.model_copy(update={"before": None, "state": self._way_back()}) if self.now else None
        base = self.now.model_dump(exclude={"before"}) if self.now else {"detector": release.detector, "revision": ""}
        return Desired.model_validate(
            base
            | {
                "release": release.name,
                "goal": "running",
                "settings": dict(self.settings),
                "state": self.state,
                "watch": watch,
                "what": "deploy",
                "message": message,
                "undoes": "",
                "before": before,
            }
        )

    def _state_rows(self) -> Rows:
        kind = self.built.description.declaration.kind
        offsets = "from the group's offsets on; nothing is judged twice or left out"
        if self.release_now is None:
            offsets = "from the earliest retained event on"
        rows = [{"what": "offsets", "now": "-", "then": offsets}]
        words = {
            "keep": "goes on with what is stored" if kind == "stateful" else "counts its open windows again",
            "rebuild": "folds all retained events anew" if kind == "stateful" else "counts its open windows again",
            "fresh": "begins empty",
        }
        if kind in ("stateful", "aggregate"):
            rows.append({"what": "state", "now": "-", "then": f"{self.state}: {words[self.state]}"})
        return rows

    def _way_back(self) -> str:
        """What the release before begins with if this one is rolled back."""
        old, new = self.release_now, self.built.description
        if old is None or old.state_shape is None or new.state_shape is None:
            return "keep"
        return "keep" if refusal(new.state_shape, old.state_shape) is None else "rebuild"


def prepare(
    folder: Path, kafka: KafkaSettings, now: Desired | None, *, state: str | None, settings: Mapping[str, Any]
) -> Candidate:
    """Checks, tests and builds `folder`; raises what is wrong with it, before anything has changed."""
    if found := problems(folder):
        raise ConfigError(f"checking {folder.name}: {len(found)} problem(s)", problems=found)
    built = build(folder)
    releases = Releases(kafka)
    of = {release.name: release for release in releases.of(folder.name)}
    known = next((release for release in of.values() if release.digest == built.parts.digest), None)
    if known is None:
        _test(folder)
    present = of.get(now.release) if now is not None else None
    policy = _policy(folder.name, present, built, state)
    overrides = {**(now.settings if now is not None else {}), **settings}
    _try_settings(folder.name, environment(built.parts), overrides)
    return Candidate(kafka, built, now, present, known, policy, overrides)


def back(
    kafka: KafkaSettings,
    present: Desired,
    history: Sequence[Happening],
    *,
    to: str | None,
    state: str | None,
    message: str,
) -> tuple[Desired, Rows]:
    """What to wish for to go back `to` a release, or else to the one that was live before; and what that changes."""
    releases = Releases(kafka)
    if to is None:
        lived = [h.release for h in history if h.what == "live" and h.release != present.release]
        if not lived:
            raise UsageError(
                f"rolling {present.detector} back: no other release has ever been live",
                hint=f"`lozenge history {present.detector}` tells what was; --to names a release",
            )
        to = lived[-1]
    then, now = releases.get(present.detector, to), releases.get(present.detector, present.release)
    if then.name == now.name:
        raise UsageError(f"rolling {present.detector} back: {to} is what is wanted now")
    reason = refusal(now.state_shape, then.state_shape) if now.state_shape and then.state_shape else None
    policy = state or ("keep" if reason is None else "rebuild")
    if policy == "keep" and reason is not None:
        raise _kept_refused(present.detector, reason)
    known = set(then.settings)
    settings = {name: value for name, value in present.settings.items() if name in known}
    _try_settings(present.detector, environment_for(then, releases), settings)
    wanted = Desired.model_validate(
        present.model_dump(exclude={"before"})
        | {"release": then.name, "goal": "running", "settings": settings, "state": policy, "what": "rollback"}
        | {"message": message, "undoes": "", "before": None}
    )
    rows = [*_differences(now, then), *_settings_row(present, settings)]
    return wanted, [*rows, {"what": "state", "now": "-", "then": policy}]


def resettle(
    kafka: KafkaSettings, present: Desired, settings: Mapping[str, Any], given: dict[str, Any], rate: int | None
) -> tuple[dict[str, Any], Rows]:
    """The fields of a desired state that `set` changes, tried on the release's own code; and what that changes."""
    releases = Releases(kafka)
    release = releases.get(present.detector, present.release)
    values = {name: v for name, v in {**present.settings, **settings}.items() if v is not None}
    _try_settings(present.detector, environment_for(release, releases), values)
    if rate is not None:
        trigger = duration(given["trigger"]) if "trigger" in given else present.trigger or release.declaration.trigger
        given["max_batch"] = max(1, int(rate * trigger.total_seconds()))
    rows = _settings_row(present, values)
    declared = {**release.declaration.model_dump(), **release.declaration.resources.model_dump()}
    for name, value in given.items():
        rows.append({"what": name, "now": getattr(present, name) or declared[name], "then": value})
    return {"settings": values, "state": "keep", **given}, rows


def _policy(name: str, present: Release | None, built: Built, state: str | None) -> str:
    declaration: Declaration = built.description.declaration
    policy = state or declaration.state
    if policy not in ("keep", "rebuild", "fresh"):
        raise UsageError(f"deploying {name}: there is no state policy {policy}", hint="keep, rebuild or fresh")
    shape = built.description.state_shape
    old = present.state_shape if present is not None else None
    if policy == "keep" and old is not None and shape is not None and (reason := refusal(old, shape)):
        raise _kept_refused(name, reason)
    if policy == "rebuild" and shape is not None:
        kept = next(int(t.config[RETENTION]) for t in topics.platform_topics() if t.name == topics.EVENTS) / 1000
        if (needed := duration(shape["expires"]).total_seconds()) > kept:
            raise UsageError(
                f"deploying {name}: its state reaches back {needed / 86_400:.0f} days, "
                f"but events are kept for {kept / 86_400:.0f}: what is rebuilt would lack the rest",
                hint="--state keep goes on with what is stored, --state fresh begins empty",
            )
    return policy if present is not None else "keep"


def _kept_refused(name: str, reason: str) -> UsageError:
    return UsageError(
        f"deploying {name}: its state cannot be kept: {reason}",
        hint="--state rebuild folds the retained events anew, --state fresh begins empty",
    )


def _test(folder: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "--import-mode=importlib", "-p", "no:cacheprovider", "."]
    run = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if run.returncode:
        sys.stderr.write(run.stdout)
        raise DetectorError(f"testing {folder.name}: its tests fail", hint=f"mend them: `lozenge test {folder.name}`")


def _try_settings(name: str, python: Path, overrides: Mapping[str, Any]) -> None:
    """Raises ConfigError with every problem of the overrides, in the words of the detector's own code."""
    if not overrides:
        return
    command = [str(python), "-m", "lozenge.job.describe", name, "--settings", json.dumps(overrides)]
    run = subprocess.run(command, env=in_environment(os.environ), cwd=python.parent, capture_output=True, text=True)
    if run.returncode:
        raise ConfigError(run.stderr.strip(), hint="nothing has changed")


def _settings_row(now: Desired | None, then: Mapping[str, Any]) -> Rows:
    before = now.settings if now is not None else {}
    if before == then:
        return []
    return [{"what": "settings", "now": _said(before), "then": _said(then)}]


def _said(settings: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in settings.items()) or "defaults"


def _differences(old: Release | None, new: "Built | Release") -> Rows:
    """What another release changes: code, defaults of settings, dependencies, declaration."""
    there = new.description if isinstance(new, Built) else new
    wheel, lock, digest = (
        (new.parts.wheel, new.parts.lock, new.parts.digest)
        if isinstance(new, Built)
        else (new.wheel, new.lock, new.digest)
    )
    rows: Rows = [{"what": "contents", "now": old.digest if old else "-", "then": digest}]
    if old is None or old.digest == digest:
        return rows
    rows += [
        {"what": file, "now": f"-{gone} lines", "then": f"+{come} lines"}
        for file, gone, come in _lines(_texts(old.wheel.content), _texts(wheel.content))
    ]
    rows += _changed("default of ", old.settings, there.settings)
    rows += _changed("", _pins(old.lock), _pins(lock))
    rows += _changed("declared ", old.declaration.model_dump(mode="json"), there.declaration.model_dump(mode="json"))
    return rows


def _changed(prefix: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Rows:
    names = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    return [{"what": f"{prefix}{name}", "now": old.get(name), "then": new.get(name)} for name in names]


def _pins(lock: str) -> dict[str, str]:
    lines = (line.split(" ")[0] for line in lock.splitlines() if "==" in line and not line.startswith((" ", "#")))
    return dict(line.split("==", 1) for line in lines)


def _texts(wheel: bytes) -> dict[str, list[str]]:
    """The lines of the files of a wheel, without what its packaging adds."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        return {name.split("/")[-1]: archive.read(name).decode(errors="replace").splitlines() for name in names}


def _lines(old: Mapping[str, list[str]], new: Mapping[str, list[str]]) -> list[tuple[str, int, int]]:
    """(file, lines gone, lines come) of every file that differs."""
    found = []
    for file in sorted(old.keys() | new.keys()):
        difference = list(unified_diff(old.get(file, []), new.get(file, []), n=0))[2:]
        gone = sum(line.startswith("-") for line in difference)
        come = sum(line.startswith("+") for line in difference)
        if gone or come:
            found.append((file, gone, come))
    return found


def _me() -> str:
    import getpass

    return getpass.getuser()
