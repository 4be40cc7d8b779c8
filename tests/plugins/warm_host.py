"""Gives a run Spark hosts of its own, which end with it.

A process of the run has a JVM of its own, and so has what it starts, but for the tests that use `hosts_of_the_run`.
"""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from lozenge.host.address import published
from lozenge.host.tool_host import SETTING

_OF_THE_RUN = "LOZENGE_TEST_HOSTS"
_FOLDER = pytest.StashKey[Path]()
_END_SECONDS = 20


@contextmanager
def hosts_of_the_run() -> Iterator[None]:
    """Within the block, tools that are started use a host that all tests of the run share; else as without tests."""
    if (hosts := os.environ.get(_OF_THE_RUN)) is None:  # a run without this plugin
        yield
        return
    before, os.environ[SETTING] = os.environ.get(SETTING, "off"), hosts
    try:
        yield
    finally:
        os.environ[SETTING] = before


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.stash[_FOLDER] = Path(tempfile.mkdtemp(prefix="lozenge-hosts-"))
        os.environ[_OF_THE_RUN] = str(config.stash[_FOLDER])
        os.environ[SETTING] = "off"


def pytest_unconfigure(config: pytest.Config) -> None:
    if (folder := config.stash.get(_FOLDER, None)) is None:
        return
    addresses = [address for host in folder.iterdir() if (address := published(host))]
    hosts = [psutil.Process(address.pid) for address in addresses if psutil.pid_exists(address.pid)]
    for host in hosts:
        host.send_signal(signal.SIGTERM)
    for host in psutil.wait_procs(hosts, _END_SECONDS)[1]:
        host.kill()
    shutil.rmtree(folder, ignore_errors=True)
