"""Builds the scene of a campaign: the platform in one folder, its detectors deployed, records flowing."""

import base64
import secrets
import shutil
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from lozenge.contracts.topics import Topics
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.process.periodic import every
from lozenge_deploy.demo.sinks.extras import Extra
from lozenge_deploy.local.declared_programs import DeclaredProgram
from lozenge_deploy.local.embedded_broker import EmbeddedBroker, Proxied
from lozenge_deploy.local.platform import jobs_of, programs
from lozenge_deploy.local.platform_request import Requested
from lozenge_deploy.local.ports import LOOPBACK, free_port
from lozenge_deploy.supervision.supervisor import Program, Supervisor
from tests.bench.checkout import Checkout
from tests.faults import file_flow
from tests.faults.file_flow import FileFlow
from tests.faults.flow import Flow
from tests.faults.plan import DETECTORS, FILE_INSTANCES, JOBS
from tests.faults.proxy import Proxy
from tests.faults.receiver import Ledger
from tests.faults.scene import Scene
from tests.faults.sinks import sinks_of
from tests.faults.verify import DELIVERIES, RECEIPTS
from tests.streams import AUTH, STREAMS, every_topic

TOPICS = Topics()

TRIGGER = "1s"
REALTIME_TRIGGER = "5s"
UPSTREAM_IN_REAL_TIME = {"LOZENGE_UPSTREAM_MODE": "realtime", "LOZENGE_UPSTREAM_COMMIT_SECONDS": "5"}
TICK_SECONDS = 0.2
OWN = Path(__file__).with_name("detectors")
SECRET = "LOZENGE_FAULTS_WEBHOOK_SECRET"
ROUTING = """[channels.faults]
type = "webhook"
url = "{url}"
networks = ["127.0.0.0/8"]
secret = {{ env = "{secret}" }}
timeout = 5
attempts = 100
first_retry = 0.5
max_retry = 5
[route]
channels = ["faults"]
[rate_limit]
alerts = 1000000
"""


@contextmanager
def scene_of(
    folder: Path,
    seed: int,
    rate: float,
    *,
    detectors: Collection[str] = JOBS,
    realtime: bool = False,
    extras: Collection[Extra] = (),
) -> Iterator[Scene]:
    """The platform, the detectors deployed and records flowing; nothing of it is left at the end but files.

    Upstream and the rule are in Real-Time Mode if `realtime`.
    """
    secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
    behind = f"{LOOPBACK}:{free_port(0)}"
    with ExitStack() as stack:
        receiver = stack.enter_context(Ledger(secret, folder / DELIVERIES))
        hooks = stack.enter_context(Proxy(receiver.url.removeprefix("http://").rstrip("/")))
        proxy = stack.enter_context(Proxy(behind))
        proxied = Proxied(int(behind.rpartition(":")[2]), proxy.port)
        broker = stack.enter_context(EmbeddedBroker(folder / "broker", heap_mb=512, proxied=proxied))
        kafka = KafkaSettings(bootstrap=broker.bootstrap)
        payments = replace(STREAMS, sound=(AUTH,))
        sinks = stack.enter_context(sinks_of(extras, folder, payments))
        own = [topic for name in detectors for topic in TOPICS.detector(name).contracts()]
        ensure_topics(kafka, [*every_topic(TOPICS, ()), *own, *sinks.running.topics(kafka)])
        sinks.running.deploy(kafka)
        checkout = Checkout(_new(folder / "checkout"), f"{LOOPBACK}:{proxy.port}", {d: DETECTORS[d] for d in detectors})
        for detector in detectors:
            _write(checkout, detector, realtime=realtime and DETECTORS[detector] == "rule")
        stack.enter_context(jobs_of(folder / "jobs"))
        supervisor = stack.enter_context(Supervisor(folder / "logs"))
        routing = folder / "routing.toml"
        routing.write_text(ROUTING.format(url=f"http://{LOOPBACK}:{hooks.port}/", secret=SECRET))
        variables = {
            "LOZENGE_DOWNSTREAM_ROUTING": str(routing),
            "LOZENGE_DOWNSTREAM_STORE": f"sqlite:///{_new(folder / 'notifier') / 'downstream.db'}",
            SECRET: secret,
            **(UPSTREAM_IN_REAL_TIME if realtime else {}),
        }
        through = KafkaSettings(bootstrap=f"{LOOPBACK}:{proxy.port}")
        in_files = rate * file_flow.SHARE if Extra.FILES in extras else 0.0
        files = FileFlow(folder / file_flow.FILES, seed, in_files) if in_files else None
        if files:
            file_flow.deploy(kafka, files.folder, in_files)
        copying = DeclaredProgram(("lozenge_upstream.files",), 1, {"LOZENGE_FILES_SOURCE": file_flow.NAME})
        instances = dict.fromkeys(FILE_INSTANCES, copying) if files else {}
        stages = programs(folder, through, payments, (), Requested(), instances)
        exporter = stages.pop("exporter")
        for program in [*stages.values(), *sinks.programs(exporter)]:
            supervisor.start(_with(program, variables))
        stack.enter_context(every(TICK_SECONDS, supervisor.watch, "watch"))
        for detector in detectors:
            checkout.trust(detector)
        with ThreadPoolExecutor(len(detectors)) as operators:
            list(operators.map(lambda detector: checkout.lozenge("deploy", detector), detectors))
        flow = Flow(kafka, seed, rate - in_files, folder / RECEIPTS)
        flow.start()
        if files:
            files.start()
            stack.callback(files.end)
        yield Scene(folder, broker, proxy, hooks, receiver, supervisor, checkout, flow, sinks, files)


def _write(checkout: Checkout, detector: str, *, realtime: bool) -> None:
    """As it is next to this module: what it raises is in `oracle`, which no template of the product knows."""
    shutil.copytree(OWN / detector, checkout.detectors / detector)
    checkout.declare(detector, trigger=REALTIME_TRIGGER if realtime else TRIGGER)
    if realtime:
        checkout.declare(detector, mode="realtime")


def _with(program: Program, variables: Mapping[str, str]) -> Program:
    return replace(program, environment=lambda start: {**program.environment(start), **variables})


def _new(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
