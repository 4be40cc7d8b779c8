"""The order of a run: random, and so that it can be repeated; the files that take longest begin first.

Processes that share a run take whole files. A long file that began last would leave the others without work.
"""

import pytest

LONGEST = (
    "test_real_jobs.py",
    "test_campaign.py",
    "test_upstream.py",
    "test_upstream_realtime.py",
    "test_upstream_instances.py",
    "test_cut_over.py",
    "test_exactly_once.py",
    "test_author.py",
    "test_moves.py",
    "test_realtime_aggregates.py",
    "test_realtime.py",
    "test_downstream.py",
    "test_deploying.py",
    "test_changes.py",
)
"""Files with more than a minute of work, the longest first."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path.name, len(LONGEST)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    seed = config.getoption("randomly_seed")
    terminalreporter.write_line(f'random order: ARGS="--randomly-seed {seed}" repeats it')
