"""Ctrl-C ends the agent and the notifier, each in a process of its own, in order."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from lozenge.kafka.settings import KafkaSettings
from tests.integration.harness import ended_behind, wait_for

PROGRAMS: Mapping[str, Callable[[Path], bool]] = {
    "lozenge_deploy.agent": lambda folder: "elected leader" in (folder / "log").read_text(),
    "lozenge_downstream": lambda folder: (folder / "lozenge-downstream.db").exists(),
}
"""By module, whether it works."""


def test_ctrl_c_ends_the_agent_and_the_notifier_in_order(kafka: KafkaSettings, tmp_path: Path) -> None:
    with ExitStack() as stack:
        running = {}
        for module in PROGRAMS:
            folder = tmp_path / module
            folder.mkdir()
            log = stack.enter_context((folder / "log").open("wb"))
            running[module] = subprocess.Popen(
                [sys.executable, "-m", module],
                env=os.environ | kafka.variables,
                cwd=folder,
                stderr=log,
                process_group=0,
            )
            stack.enter_context(ended_behind(running[module], 0.0))
        for module, process in running.items():
            folder = tmp_path / module
            wait_for(lambda: PROGRAMS[module](folder) or process.poll() is not None, f"{module} to work")  # noqa: B023
            process.send_signal(signal.SIGINT)
        for module, process in running.items():
            said = (tmp_path / module / "log").read_text
            assert process.wait(60) == 0, said()
            assert "Traceback" not in said()
