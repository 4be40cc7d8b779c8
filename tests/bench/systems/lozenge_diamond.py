"""Ours as a whole: upstream, a rule and the notifier, each the real process of the platform."""

import sys
from collections.abc import Mapping
from functools import partial

from tests.bench.harness.system import DIAMOND, WEBHOOK_SECRET, Guarantees, Shape, Start, System
from tests.bench.systems import lozenge_job
from tests.bench.systems.together import together

ROUTING = """
[channels.bench]
type = "webhook"
url = "{url}"
networks = ["127.0.0.0/8"]
secret = {{ env = "BENCH_SECRET" }}
[route]
channels = ["bench"]
[rate_limit]
alerts = 1000000
"""


def command(start: Start, upstream: Mapping[str, str], declared: Mapping[str, str]) -> list[str]:
    """All three; the notifier's store outlives them, as its numbers continue in the topic of notifications."""
    routing = start.folder / "routing.toml"
    routing.write_text(ROUTING.format(url=start.webhook))
    variables = {
        "LOZENGE_UPSTREAM_REKEYS": "[]",
        "LOZENGE_DOWNSTREAM_STORE": f"sqlite:///{start.folder.parent / 'downstream.db'}",
        "LOZENGE_DOWNSTREAM_ROUTING": str(routing),
        "BENCH_SECRET": WEBHOOK_SECRET,
        **upstream,
    }
    given = ["env", *(f"{name}={value}" for name, value in variables.items()), sys.executable, "-m"]
    return together(
        [
            [*given, "lozenge_upstream"],
            lozenge_job.command(start, declared),
            [*given, "lozenge_downstream"],
        ]
    )


def _system(name: str, commit: str, core: frozenset[Shape], upstream: Mapping[str, str], **declared: str) -> System:
    guarantees = Guarantees("exactly once", commit, state="SQLite of the notifier; a webhook may come again")
    start = partial(command, upstream=upstream, declared=declared)
    warm_up_seconds = lozenge_job.warm_up_seconds(declared)
    return System(
        f"Lozenge, {name}",
        "ours",
        guarantees,
        start,
        frozenset({"rule"}),
        DIAMOND,
        core=core,
        warm_up_seconds=warm_up_seconds,
    )


SYSTEMS = (
    _system(
        "all in realtime",
        "every minute, the notifier's every batch",
        DIAMOND,
        {"LOZENGE_UPSTREAM_MODE": "realtime"},
        mode="realtime",
    ),
    # a commit holds records up: with one in five minutes those are fewer than the 99th percentile looks at
    _system(
        "realtime, commit 5 m",
        "every five minutes, the notifier's every batch",
        frozenset(),
        {"LOZENGE_UPSTREAM_MODE": "realtime", "LOZENGE_UPSTREAM_COMMIT_SECONDS": "300"},
        mode="realtime",
        trigger="5m",
    ),
    _system("as it is by default", "every batch", frozenset(), {}),
)
