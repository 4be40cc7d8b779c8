"""Releases that become unhealthy on demand."""

from pathlib import Path

from tests.bench.checkout import Checkout

BECOMES_UNHEALTHY = """
import os
import time
from pathlib import Path

from lozenge.kafka.writers import TransactionalWriter

_healthy = TransactionalWriter._retrying


def _unhealthy(self, doing, call):
    if doing == "committing" and Path("{file}").exists():
        {harm}
    return _healthy(self, doing, call)


TransactionalWriter._retrying = _unhealthy
"""
HARMS = {
    "hangs": "time.sleep(3600)",
    "ends": "os._exit(7)",
    "raises": "raise RuntimeError('unhealthy')",
    "eats memory": "eaten = [os.urandom(1 << 20) * 64 for _ in range(1000)]",
}
FLOODS = "[print('x' * 200) for _ in range(1_000_000)]"


def deploy_what_becomes_unhealthy(checkout: Checkout, detector: str, harm: str, *options: str) -> Path:
    """The file whose presence makes it unhealthy, from its next commit on."""
    file = checkout.folder / f"{detector}-unhealthy-now"
    checkout.change(detector, BECOMES_UNHEALTHY.format(file=file, harm=harm))
    checkout.trust(detector)
    checkout.lozenge("deploy", detector, *options)
    return file


HEAP = """[
            __import__("pyspark").SparkContext._gateway.jvm.java.nio.ByteBuffer.allocate(1 << 26) for _ in range(1000)
        ]"""
"""Fills the heap of the JVM, which other detectors may share."""
