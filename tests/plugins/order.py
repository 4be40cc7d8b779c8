"""Says in which random order a run was, so that it can be repeated."""

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    seed = config.getoption("randomly_seed")
    terminalreporter.write_line(f'random order: ARGS="--randomly-seed {seed}" repeats it')
