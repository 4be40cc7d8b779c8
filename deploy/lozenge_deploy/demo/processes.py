"""The processes of the demo: each stage's command and environment, as an operator would set them."""

import base64
import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path

from lozenge.host.address import published_by
from lozenge.host.log_attribution import APP as SPARK_HOST
from lozenge.host.process import host_arguments
from lozenge.kafka.settings import KafkaSettings
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.project import STREAMS_VARIABLE
from lozenge.toolchain.java import java_home
from lozenge_deploy.hosts.host_pool import default_size
from lozenge_deploy.local.upstream_replicas import normaliser_variables
from lozenge_deploy.releases.build import digest_of
from lozenge_deploy.releases.detector_catalog import DetectorFolder
from lozenge_deploy.releases.environments import in_environment
from lozenge_deploy.supervision.supervisor import Program

SECRET_VARIABLE = "LOZENGE_DEMO_WEBHOOK_SECRET"
SHORT_PAST = 100_000
"""Up to so many records of history, the JVM's first compiler alone is faster.

It takes 23 to 26 s to the first notification instead of 29 to 33; the second compiler pays off after minutes.
"""

NICE = 7
"""Detectors and sinks that start later must not slow down what already runs."""


ROUTING = """[channels.demo]
type = "webhook"
url = "{url}"
networks = ["127.0.0.0/8"]
secret = {{ env = "{secret}" }}
[route]
channels = ["demo"]
[rate_limit]
alerts = 1000000
"""
"""Days of history arrive within a minute, and no detector is rate-limited for it."""


class Programs:
    """The programs of one run, on one platform; their files lie in `work`, the streams in `streams`."""

    def __init__(self, kafka: KafkaSettings, streams: Path, work: Path, past: int) -> None:
        self._kafka, self._streams, self._work, self._past = kafka, streams, work, past
        self._host_folder = work / SPARK_HOST
        self.secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()

    def normaliser(self, stream: StreamDefinition, rekeys: tuple[str, ...], merges: tuple[str, ...]) -> Program:
        """The normaliser of a stream, with copies by `rekeys` and `merges`. One batch may take the whole history.

        Batches end at different times in each partition. Where ninety days are sent in seconds, these times are hours
        apart in event time, more than the lateness of a detector.
        """
        whole = {"LOZENGE_UPSTREAM_MAX_OFFSETS": str(self._past + 100_000)}
        return self._program(stream.app, ["lozenge_upstream"], normaliser_variables(stream, rekeys, merges) | whole)

    def downstream(self, webhook_url: str) -> Program:
        """The notifier, with one webhook that receives every alert."""
        routing = self._work / "routing.toml"
        routing.write_text(ROUTING.format(url=webhook_url, secret=SECRET_VARIABLE))
        variables = {
            "LOZENGE_DOWNSTREAM_STORE": f"sqlite:///{self._work / 'downstream.db'}",
            "LOZENGE_DOWNSTREAM_ROUTING": str(routing),
            "LOZENGE_DOWNSTREAM_INSTANCE": "demo",
            SECRET_VARIABLE: self.secret,
        }
        return self._program("downstream", ["lozenge_downstream"], variables)

    def feed(self, rate: float, seed: int, seconds: float | None, files: Path | None) -> Program:
        """The generator; it ends by itself after `seconds` of live traffic. More payments are written into `files`."""
        arguments = [
            "--count",
            str(self._past),
            "--rate",
            str(rate),
            "--seed",
            str(seed),
            "--summary",
            str(self.summary),
        ]
        if seconds is not None:
            arguments += ["--for", f"{seconds:f}s"]
        if files is not None:
            arguments += ["--files", str(files)]
        return self._program("feed", ["lozenge_deploy.demo.feed", *arguments], {}, finite=True)

    def spark_host(self, python: Path) -> Program:
        """The JVM that all detectors share, as those of an agent do; `python` is that of one of them."""
        command = [str(python), *host_arguments(self._host_folder, default_size(), forks=True)]
        return Program(SPARK_HOST, command, lambda _: in_environment(self._environment({})), self._work)

    def host_is_ready(self, pid: int) -> bool:
        """Whether the Spark host with this process takes clients."""
        return published_by(self._host_folder, pid) is not None

    def detector(self, detector: DetectorFolder, python: Path, nice: int = 0) -> Program:
        """A detector in its own environment; every start has a higher generation than the previous one."""
        common = {
            "LOZENGE_JOB_HOST": str(self._host_folder),
            "LOZENGE_JOB_RELEASE": f"{detector.version}+{digest_of(detector.folder)[:8]}",
            "LOZENGE_JOB_WORK": str(self._work / "jobs"),
        }

        def environment(start: int) -> Mapping[str, str]:
            return in_environment(self._environment(common | {"LOZENGE_JOB_GENERATION": str(start + 1)}), python)

        return Program(detector.name, [str(python), "-m", "lozenge.job"], environment, self._work, nice)

    def sink(self, app: str, name: str, variables: Mapping[str, str]) -> Program:
        """The process of a sink that is deployed."""
        return self._program(app, ["lozenge.sink", name], variables, nice=NICE)

    def file_source(self, app: str, name: str) -> Program:
        """The process of the file source `name`, which is deployed."""
        return self._program(app, ["lozenge_upstream.files"], {"LOZENGE_FILES_SOURCE": name}, nice=NICE)

    @property
    def summary(self) -> Path:
        """The generator's summary of what it sent and injected."""
        return self._work / "feed.json"

    def _program(
        self, name: str, module: list[str], variables: Mapping[str, str], *, nice: int = 0, finite: bool = False
    ) -> Program:
        command = [sys.executable, "-m", *module]
        return Program(name, command, lambda _: self._environment(variables), self._work, nice, finite)

    def _environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Ours without the settings of another cluster, and `variables`."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LOZENGE_KAFKA_")}
        ours = {**self._kafka.variables, STREAMS_VARIABLE: str(self._streams), "JAVA_HOME": str(java_home())}
        quick = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"} if self._past <= SHORT_PAST else {}
        return quick | kept | ours | dict(variables)
