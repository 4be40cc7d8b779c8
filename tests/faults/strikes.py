"""How each fault is done to the platform, and undone. A strike returns when nothing is wrong any more by itself."""

import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count

from tests.faults.disks import filled
from tests.faults.plan import CACHE_SERVER, Fault
from tests.faults.proxy import Toxic
from tests.faults.records import Sort
from tests.faults.scene import Scene, signal_group

SLUG = 300
TOXICS: Mapping[str, Toxic] = {
    "latency": Toxic(latency=0.3, jitter=0.2),
    "bandwidth": Toxic(bandwidth=300_000, slice_bytes=16_384),
    "slices": Toxic(slice_bytes=500),
    "limit": Toxic(limit=50_000),
    "slow close": Toxic(slow_close=3.0),
    "silence": Toxic(silence=True),
    "cut": Toxic(limit=1),
}
HOOK_TOXICS: Mapping[str, Toxic] = {
    "slow": Toxic(latency=1.0, jitter=0.9),
    "hanging": Toxic(silence=True),
    "resetting": Toxic(limit=1),
}
RESUME_SECONDS = 240.0
_values = count(400)


def strike(scene: Scene, fault: Fault) -> str:
    """Does it; what there is to say of it beyond that, "" for nothing."""
    return _STRIKES[fault.kind](scene, fault)


def _kill(scene: Scene, fault: Fault) -> str:
    if fault.target == "broker":
        scene.bounce()
        return ""
    if fault.target == CACHE_SERVER:
        scene.sinks.bounce()
        return ""
    return _end(scene.main(fault.target))


def _kill_jvm(scene: Scene, fault: Fault) -> str:
    return _end(scene.jvm(fault.target))


def _end(pid: int | None) -> str:
    if pid is None:
        return "it did not run"
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return ""


def _freeze(scene: Scene, fault: Fault) -> str:
    if (leader := scene.leader(fault.target)) is None:
        return "it did not run"
    signal_group(leader, signal.SIGSTOP)
    time.sleep(fault.seconds)
    signal_group(leader, signal.SIGCONT)
    return ""


def _outage(scene: Scene, fault: Fault) -> str:
    (scene.sinks if fault.target == CACHE_SERVER else scene).bounce(away=fault.seconds)
    return ""


def _restart(scene: Scene, fault: Fault) -> str:
    scene.bounce(gently=True)
    return ""


def _network(scene: Scene, fault: Fault) -> str:
    match fault.target:
        case "reset":
            scene.proxy.reset()
        case "half close":
            scene.proxy.half_close()
        case target:
            with scene.proxy.given(TOXICS[target]):
                if target in ("slow close", "cut"):
                    scene.proxy.half_close()
                time.sleep(fault.seconds)
    return ""


def _full_disk(scene: Scene, fault: Fault) -> str:
    with filled(scene.folder / fault.target):
        time.sleep(fault.seconds)
    return "it ended the broker" if scene.revive() else ""


def _webhook(scene: Scene, fault: Fault) -> str:
    if fault.target == "failing":
        scene.receiver.failing = True
        time.sleep(fault.seconds)
        scene.receiver.failing = False
    else:
        with scene.hooks.given(HOOK_TOXICS[fault.target]):
            time.sleep(fault.seconds)
    return ""


def _deploy(scene: Scene, fault: Fault) -> str:
    scene.checkout.change(fault.target)
    scene.checkout.trust(fault.target)
    return _operate(scene, "deploy", fault.target)


def _set(scene: Scene, fault: Fault) -> str:
    """Another value that makes no difference to what is raised."""
    value = next(_values)
    change = [f"limit={value}"] if fault.target == "each_large" else ["--max-batch", str(100 * value)]
    return _operate(scene, "set", fault.target, *change)


def _rollback(scene: Scene, fault: Fault) -> str:
    if scene.checkout.unchanged(fault.target) and (said := _deploy(scene, fault)):
        return said
    return _operate(scene, "rollback", fault.target)


def _pause(scene: Scene, fault: Fault) -> str:
    """What is paused is resumed, however often that must be requested."""
    said = _operate(scene, "pause", fault.target)
    deadline = time.monotonic() + RESUME_SECONDS
    while (refused := _operate(scene, "resume", fault.target)) and time.monotonic() < deadline:
        said = said or refused
        time.sleep(1)
    return said


def _replace(scene: Scene, fault: Fault) -> str:
    return _operate(scene, "restart", fault.target)


def _operate(scene: Scene, *arguments: str) -> str:
    run = scene.checkout.run(*arguments, "--timeout", "4m")
    said = run.stderr.strip().splitlines()
    return f"exit code {run.returncode}: {said[-1] if said else ''}" if run.returncode else ""


def _records(scene: Scene, fault: Fault) -> str:
    scene.flow.slug(SLUG, Sort(fault.target))
    return ""


_STRIKES: Mapping[str, Callable[[Scene, Fault], str]] = {
    "kill": _kill,
    "kill the JVM of": _kill_jvm,
    "freeze": _freeze,
    "outage of": _outage,
    "restart": _restart,
    "network": _network,
    "full disk of": _full_disk,
    "webhook": _webhook,
    "deploy": _deploy,
    "set": _set,
    "rollback": _rollback,
    "pause": _pause,
    "replace": _replace,
    "records": _records,
}
