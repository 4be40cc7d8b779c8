"""Releases that fall ill when they are told to."""

from pathlib import Path

from tests.bench.checkout import Checkout

FALLS_ILL = """
import os
import time
from pathlib import Path

from lozenge.kafka.writers import TransactionalWriter

_well = TransactionalWriter._retrying


def _ill(self, doing, call):
    if doing == "committing" and Path("{file}").exists():
        {harm}
    return _well(self, doing, call)


TransactionalWriter._retrying = _ill
"""
HARMS = {
    "hangs": "time.sleep(3600)",
    "ends": "os._exit(7)",
    "raises": "raise RuntimeError('ill')",
    "eats memory": "eaten = [os.urandom(1 << 20) * 64 for _ in range(1000)]",
}
FLOODS = "[print('x' * 200) for _ in range(1_000_000)]"


def deploy_what_falls_ill(checkout: Checkout, detector: str, harm: str, *options: str) -> Path:
    """The file whose presence makes it ill, from its next commit on."""
    file = checkout.folder / f"{detector}-ill-now"
    checkout.change(detector, FALLS_ILL.format(file=file, harm=harm))
    checkout.lozenge("deploy", detector, *options)
    return file
