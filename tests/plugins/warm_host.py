"""Gives the tools that a run starts a warm Spark host of the run's own, which ends with it."""

import os
import shutil
import signal
import tempfile
from pathlib import Path

import psutil
import pytest

from lozenge.host.address import published

SETTING = "LOZENGE_SPARK_HOST"
_FOLDER = pytest.StashKey[Path]()
_END_SECONDS = 20


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and SETTING not in os.environ:
        config.stash[_FOLDER] = Path(tempfile.mkdtemp(prefix="lozenge-hosts-"))
        os.environ[SETTING] = str(config.stash[_FOLDER])


def pytest_unconfigure(config: pytest.Config) -> None:
    if (folder := config.stash.get(_FOLDER, None)) is None:
        return
    del os.environ[SETTING]
    addresses = [address for host in folder.iterdir() if (address := published(host))]
    hosts = [psutil.Process(address.pid) for address in addresses if psutil.pid_exists(address.pid)]
    for host in hosts:
        host.send_signal(signal.SIGTERM)
    for host in psutil.wait_procs(hosts, _END_SECONDS)[1]:
        host.kill()
    shutil.rmtree(folder, ignore_errors=True)
