"""A campaign: incident after incident, each until the platform is back, then the check of the independent verifier."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lozenge.errors import LozengeError
from lozenge_deploy.demo.sinks.extras import Extra
from tests.faults.building import scene_of
from tests.faults.disks import small_disk
from tests.faults.file_flow import SHARE
from tests.faults.flow import NotSent
from tests.faults.plan import ARCHIVE, FULL_DISK, JOBS, TARGETS, Fault, Incident, plan
from tests.faults.recovery import QUIET_SECONDS, NotBack, Recovery
from tests.faults.scene import Scene
from tests.faults.strikes import strike

ROOT = Path(__file__).parents[2]
DISK_MB = {"broker": 3072, "jobs": 1536, "notifier": 512}
ARCHIVE_MB = 128


@dataclass(frozen=True)
class Order:
    """What a campaign is to be: `faults` in all unless `seconds` are over before, at least `records` raw records.

    `together` faults make one incident where it is above 1. After each, the platform has `deadline` seconds. It is
    drained when nothing has come for `quiet` seconds. If it is `realtime`, upstream and the rule run in Real-Time
    Mode. `extras` run too: sinks, and a source of files, by which a half of the records come.
    """

    seed: int
    faults: int
    records: int
    rate: float
    kinds: tuple[str, ...] = tuple(TARGETS)
    together: int = 1
    seconds: float = float("inf")
    deadline: float = 240.0
    upstream: str = "exactly-once"
    realtime: bool = False
    detectors: tuple[str, ...] = JOBS
    quiet: float = QUIET_SECONDS
    extras: tuple[Extra, ...] = ()


@dataclass
class Struck:
    """An incident as it went: seconds since the campaign's begin, and until the platform was back (None: never)."""

    at: float
    faults: tuple[Fault, ...]
    said: tuple[str, ...]
    recovery: float | None = None
    why: str = ""


@dataclass
class Campaign:
    """All there is to report of one."""

    order: Order
    struck: list[Struck] = field(default_factory=list)
    skipped: str = ""
    seconds: float = 0.0
    result: dict[str, Any] = field(default_factory=dict)
    why: str = ""

    @property
    def holds(self) -> bool:
        """Whether nothing was lost or doubled and the platform came back each time."""
        back = all(incident.recovery is not None for incident in self.struck)
        return back and not self.why and bool(self.result.get("holds"))


def run(order: Order, folder: Path, on_incident: Callable[[Struck], None]) -> Campaign:
    """Runs it in `folder`, which is to be empty; `on_incident` is called after each incident."""
    campaign = Campaign(order)
    with ExitStack() as stack:
        kinds = order.kinds
        if FULL_DISK in kinds:
            disks = DISK_MB | ({ARCHIVE: ARCHIVE_MB} if Extra.ARCHIVE in order.extras else {})
            refused = [stack.enter_context(small_disk(folder / name, size)) for name, size in disks.items()]
            campaign.skipped = "; ".join(filter(None, refused))
            kinds = tuple(kind for kind in kinds if kind != FULL_DISK or not campaign.skipped)
        incidents = plan(order.seed, order.faults, kinds, order.together, order.detectors, order.extras)
        scene = stack.enter_context(
            scene_of(
                folder,
                order.seed,
                order.rate,
                detectors=order.detectors,
                realtime=order.realtime,
                extras=order.extras,
            )
        )
        recovery = Recovery(scene, scene.kafka, order.quiet)
        began = time.monotonic()
        try:
            recovery.wait(order.deadline)
            for incident in incidents:
                if time.monotonic() - began > order.seconds:
                    break
                _send(scene, order.records // len(incidents) + 1)
                campaign.struck.append(_one(scene, recovery, incident, order.deadline, began))
                on_incident(campaign.struck[-1])
                if campaign.struck[-1].recovery is None:
                    break
        except (NotBack, LozengeError) as error:
            campaign.why = str(error)
        try:
            # what still flows while the verifier reads would look like loss
            scene.flow.end()
            if scene.files:
                scene.files.end()
            recovery.settle(2 * order.deadline)
            campaign.result = _verified(scene, order)
        except (NotBack, NotSent, LozengeError) as error:
            campaign.why = "; ".join(filter(None, [campaign.why, f"not verified, for it is not at rest: {error}"]))
        campaign.seconds = time.monotonic() - began
    return campaign


def _send(scene: Scene, count: int) -> None:
    """So many raw records more, a share of them in files where some are."""
    in_files = int(count * SHARE) if scene.files else 0
    if scene.files:
        scene.files.slug(in_files)
    scene.flow.slug(count - in_files)


def _one(scene: Scene, recovery: Recovery, incident: Incident, deadline: float, began: float) -> Struck:
    time.sleep(incident.wait)
    at = time.monotonic() - began
    with ThreadPoolExecutor(len(incident.faults)) as strikers:
        said = tuple(strikers.map(lambda fault: _struck(scene, fault), incident.faults))
    struck, over = Struck(at, incident.faults, said), time.monotonic()
    try:
        recovery.wait(deadline)
        struck.recovery = time.monotonic() - over
    except NotBack as error:
        struck.why = str(error)
    return struck


def _struck(scene: Scene, fault: Fault) -> str:
    time.sleep(fault.after)
    return strike(scene, fault)


def _verified(scene: Scene, order: Order) -> dict[str, Any]:
    """What the verifier says, which is a process of its own and knows nothing of us."""
    command = [sys.executable, "-m", "tests.faults.verify", str(scene.folder), "--bootstrap", scene.kafka.bootstrap]
    options = ["--upstream", order.upstream, "--detectors", ",".join(order.detectors)]
    if Extra.ARCHIVE in order.extras:
        options += ["--archive", str(scene.folder / ARCHIVE)]
    if scene.files:
        options += ["--files", str(scene.files.folder)]
    if scene.sinks.server:
        options += ["--cache", scene.sinks.server.url]
    verified = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True)
    if not verified.stdout:
        return {"holds": False, "counts": {}, "wrong": [], "error": verified.stderr}
    result: dict[str, Any] = json.loads(verified.stdout)
    return result


def recoveries(struck: Iterable[Struck]) -> dict[str, list[float]]:
    """Recovery seconds by kind of fault, "two at once" for what came together."""
    times: dict[str, list[float]] = {}
    for incident in struck:
        if incident.recovery is not None:
            kinds = {fault.kind for fault in incident.faults}
            several = len(incident.faults) > 1
            times.setdefault("several at once" if several else kinds.pop(), []).append(incident.recovery)
    return times
