"""A real Kafka broker as a child process: for the demo, a laptop and the tests.

One KRaft node on loopback, without replication. Production needs its own Kafka.
"""

import fcntl
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from lozenge.errors import BrokerUnavailable, UsageError
from lozenge.process.retries import retry
from lozenge_deploy.local.broker_jvm import SETTINGS, copy_formatted, format_folder, java_command, logging_options
from lozenge_deploy.local.broker_session import end_session, was_killed
from lozenge_deploy.local.ports import LOOPBACK, free_ports
from lozenge_deploy.supervision.child import Child


@dataclass(frozen=True)
class SecureListener:
    """A second listener: SASL_SSL with SCRAM-SHA-512.

    `keystore` is a PEM file with the private key and its certificate, which must name 127.0.0.1. The user is written
    into a new data folder; an existing folder keeps its users.
    """

    keystore: Path
    username: str
    password: str
    port: int = 0


@dataclass(frozen=True)
class Proxied:
    """A further PLAINTEXT listener on `port`, for a proxy: it advertises the proxy's port, `proxy`, to clients."""

    port: int
    proxy: int


class EmbeddedBroker:
    """A broker with the topics in the folder `data`, which it creates if it does not exist.

    A port of 0 is chosen at the first `start` and kept for the object's life. As a context manager it starts on entry
    and stops on exit. If this process dies, even by SIGKILL, the broker dies too.
    """

    def __init__(
        self,
        data: Path,
        port: int = 0,
        *,
        heap_mb: int = 256,
        secure: SecureListener | None = None,
        proxied: Proxied | None = None,
        jvm_options: Sequence[str] = (),
    ) -> None:
        self.data = data.absolute()
        self._heap_mb = heap_mb
        self._secure = secure
        self._proxied = proxied
        self._jvm_options = jvm_options
        self._port = port
        self._secure_port = secure.port if secure else 0
        self._process: Child | None = None
        self._claim: IO[str] | None = None

    @property
    def bootstrap(self) -> str:
        """The address for PLAINTEXT clients; known after the first start."""
        return f"{LOOPBACK}:{self._port}"

    @property
    def secure_bootstrap(self) -> str:
        """The address for SASL_SSL clients, if it has that listener."""
        return f"{LOOPBACK}:{self._secure_port}"

    @property
    def pid(self) -> int | None:
        """The running broker's process id; None if it does not run."""
        return self._process.pid if self._process and self._process.poll() is None else None

    @property
    def log(self) -> Path:
        """The broker's own log; read it first if the broker does not start."""
        return self.data / "broker.log"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def start(self, *, timeout: float = 120) -> None:
        """Starts it and returns once an admin client gets an answer; does nothing if it runs.

        Raises UsageError if a port or the data folder is in use. Raises BrokerUnavailable, with the last lines of its
        log, if it exits or does not answer within `timeout` seconds.
        """
        if self.pid:
            return
        self.kill()  # cleans up after one that exited by itself
        deadline = time.monotonic() + timeout
        self.data.mkdir(parents=True, exist_ok=True)
        self._claim_data()
        try:
            self._launch()
            self._await_answer(deadline, timeout)
        except BaseException:
            self.kill()
            raise

    def stop(self, *, timeout: float = 20) -> None:
        """Stops it gracefully, by SIGKILL after `timeout` seconds; its topics stay in `data`."""
        if self._process:
            self._process.terminate()
            self._process.end(timeout)
        self.kill()

    def kill(self) -> None:
        """Kills it, like a power failure; the next `start` recovers its data, with every transaction whole."""
        if self._process:
            self._process.end()
        if self._claim:
            self._claim.close()
        self._process = self._claim = None

    def _claim_data(self) -> None:
        """Locks the folder for the life of the broker's own process, which inherits the lock.

        Kafka's own lock comes too late: a second broker has already written to the metadata by then.
        """
        self._claim = claim = (self.data / ".claim").open("w")
        try:
            retry(
                lambda: fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB),
                lambda error: isinstance(error, BlockingIOError),
                seconds=3.0,  # a broker whose owner was just killed is about to exit
                pause=0.05,
            )
        except BlockingIOError as error:
            self.kill()
            raise UsageError(
                f"starting the embedded broker: another one runs on {self.data}",
                hint="stop that one, or use another folder",
            ) from error

    def _launch(self) -> None:
        assert self._claim
        further = [*([self._secure_port] if self._secure else []), *([self._proxied.port] if self._proxied else [])]
        self._port, controller, *others = free_ports(self._port, 0, *further)
        if self._secure:
            self._secure_port = others[0]
        properties = self.data / "server.properties"
        properties.write_text(SETTINGS.read_text() + "\n".join(self._listeners(controller)) + "\n")
        properties.chmod(0o600)
        if not (self.data / "topics" / "meta.properties").exists():
            self._format(properties)
        if was_killed(self.data / "topics"):
            end_session(self.data, self._claim.fileno())
        options = [f"-Xmx{self._heap_mb}m", *logging_options(self.log), *self._jvm_options]
        with (self.data / "broker.out").open("wb") as out:
            self._process = Child(
                java_command("kafka.Kafka", str(properties), jvm=options),
                stdout=out,
                stderr=subprocess.STDOUT,
                pass_fds=[self._claim.fileno()],
                own_session=True,  # it gets its share of the processor, however many jobs run
            )

    def _listeners(self, controller_port: int) -> list[str]:
        controller = f"{LOOPBACK}:{controller_port}"
        listeners = advertised = f"PLAINTEXT://{self.bootstrap}"
        lines = [f"log.dirs={self.data / 'topics'}", f"controller.quorum.voters=1@{controller}"]
        if self._secure:
            listeners += f",SASL_SSL://{self.secure_bootstrap}"
            advertised = listeners
            lines += [
                "sasl.enabled.mechanisms=SCRAM-SHA-512",
                "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config="
                "org.apache.kafka.common.security.scram.ScramLoginModule required;",
                "ssl.keystore.type=PEM",
                f"ssl.keystore.location={self._secure.keystore.absolute()}",
            ]
        if self._proxied:
            listeners += f",PROXIED://{LOOPBACK}:{self._proxied.port}"
            advertised += f",PROXIED://{LOOPBACK}:{self._proxied.proxy}"
        return [*lines, f"advertised.listeners={advertised}", f"listeners={listeners},CONTROLLER://{controller}"]

    def _format(self, properties: Path) -> None:
        """Prepares the data folder, without users by a copy: a format takes a JVM of its own."""
        if self._secure:
            login = f"name={self._secure.username},password={self._secure.password}"
            format_folder(properties, self.data, ["--add-scram", f"SCRAM-SHA-512=[{login}]"])
        else:
            copy_formatted(self.data)

    def _await_answer(self, deadline: float, timeout: float) -> None:
        ended = None
        while time.monotonic() < deadline and ended is None:
            if _listening(self._port) and _answers(self.bootstrap):
                return
            time.sleep(0.05)
            ended = self._process.poll() if self._process else 1
        what = f"did not answer for {timeout:g} s" if ended is None else f"exited with code {ended}"
        output = [file.read_text(errors="replace") for file in (self.data / "broker.out", self.log) if file.exists()]
        spoken = [line for line in "".join(output).splitlines() if not line.startswith("\t")]  # no stack frames
        last = "".join(f"\n  {line}" for line in spoken[-5:])
        raise BrokerUnavailable(
            f"the embedded broker {what}{last}",
            hint=f"read {self.log}; a damaged data folder can be deleted if nothing in it is needed",
        )


def _listening(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((LOOPBACK, port)) == 0


def _answers(bootstrap: str) -> bool:
    # log_level 0: a broker that is not up yet is expected here, so librdkafka must not log it
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    try:
        return bool(admin.list_topics(timeout=2).brokers)
    except KafkaException:
        return False
