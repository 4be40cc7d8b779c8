import subprocess
import sys
import time

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from lozenge.metrics import Metrics
from lozenge_deploy.exporter import FORGET_SECONDS, Snapshots, parse


def test_shows_the_last_snapshot_of_every_instance() -> None:
    seen, registry = Snapshots(), CollectorRegistry()
    registry.register(seen)
    for instance, count in (("0", 3), ("1", 4)):
        metrics = Metrics("upstream", instance, "1.0.0")
        metrics.records(1)
        seen.take(f"upstream/{instance}", metrics.snapshot())
        metrics.records(count - 1)
        metrics.dead_letters(2, "decode")
        seen.take(f"upstream/{instance}", metrics.snapshot())
    text = generate_latest(registry).decode()
    assert 'lozenge_records_total{app="upstream",instance="0",release="1.0.0"} 3.0' in text
    assert 'lozenge_records_total{app="upstream",instance="1",release="1.0.0"} 4.0' in text
    assert 'lozenge_dead_letters_total{app="upstream",instance="0",release="1.0.0",stage="decode"} 2.0' in text


def test_forgets_an_instance_that_is_gone() -> None:
    seen = Snapshots()
    seen.take("upstream/0", Metrics("upstream").snapshot() | {"time": time.time() - FORGET_SECONDS - 1})
    assert not list(seen.collect())


def test_reads_the_labels_of_a_sample() -> None:
    assert parse("a_total") == ("a_total", {})
    assert parse("a_bucket{le=+Inf,stage=detect}") == ("a_bucket", {"le": "+Inf", "stage": "detect"})


@pytest.mark.parametrize("port", ["http", "70000"])
def test_a_port_that_is_none_gets_a_sentence(port: str) -> None:
    command = [sys.executable, "-m", "lozenge_deploy.exporter", port]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, "Traceback" in ended.stderr) == (2, False), ended.stderr
    assert f"port {port}: " in ended.stderr
