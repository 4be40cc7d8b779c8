"""Ends the session of a single broker that was killed, before that broker starts again.

The controller of a killed node counts its broker as alive until the session times out. A broker of Kafka 4.3.1 that
starts meanwhile finds its partitions led by that session, and takes up the transactions that were about to end. Then
the session ends and no partition has a leader. The markers are dropped ("partitions are likely deleted already"), and a
committed read of these partitions waits for them without end. So the node first runs as a controller alone.
"""

import subprocess
from pathlib import Path

from lozenge.process.waiting import wait_until
from lozenge_deploy.local.broker_jvm import SETTINGS, java_command, logging_options
from lozenge_deploy.local.ports import LOOPBACK, free_port
from lozenge_deploy.supervision.child import Child

_STOPPED_IN_ORDER = ".kafka_cleanshutdown"
_SESSION_ENDED = "because its session has timed out"
_SESSION_SECONDS = 10.0
"""How long the controller has for it. A broker that was killed before its session began has none to end."""
_STOP_SECONDS = 5.0
_ALONE = "process.roles=controller", "broker.session.timeout.ms=1000", "broker.heartbeat.interval.ms=500"


def was_killed(topics: Path) -> bool:
    """Whether the broker of these topics ran before and was not stopped in order."""
    return (topics / "__cluster_metadata-0").exists() and not (topics / _STOPPED_IN_ORDER).exists()


def end_session(data: Path, claim: int) -> None:
    """Runs the node of the folder `data` as a controller until its broker's session is over.

    The process inherits the lock `claim`. Whatever the controller does, the broker may start afterwards: at worst it
    starts as one whose session counts.
    """
    log = data / "controller.log"
    log.unlink(missing_ok=True)
    controller = Child(
        java_command("kafka.Kafka", str(_properties(data)), jvm=["-Xmx64m", *logging_options(log)]),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[claim],
        own_session=True,
    )

    def over() -> bool:
        ended = log.exists() and _SESSION_ENDED in log.read_text(errors="replace")
        return ended or controller.poll() is not None

    try:
        wait_until(over, _SESSION_SECONDS)
        controller.terminate()
    finally:
        controller.end(_STOP_SECONDS)


def _properties(data: Path) -> Path:
    controller = f"{LOOPBACK}:{free_port(0)}"
    lines = [line for line in SETTINGS.read_text().splitlines() if not line.startswith("inter.broker.")]
    lines += [*_ALONE, f"log.dirs={data / 'topics'}"]
    lines += [f"controller.quorum.voters=1@{controller}", f"listeners=CONTROLLER://{controller}"]
    properties = data / "controller.properties"
    properties.write_text("\n".join(lines) + "\n")
    return properties
