"""The order of a run: random, and so that it can be repeated; the files that take longest begin first.

Processes that share a run take whole files. A long file that began last would leave the others without work.
"""

import pytest

FIRST = (
    "test_real_jobs.py",
    "test_downstream.py",
    "test_downstream_evaluation.py",
    "test_campaign.py",
    "test_upstream.py",
    "test_changes.py",
    "test_author.py",
    "test_cut_over.py",
    "test_exactly_once.py",
)
"""Files with more than a minute of work, in an order in which those that wait run next to those that compute."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ranks = {name: rank for rank, name in enumerate(FIRST)}
    items.sort(key=lambda item: ranks.get(item.path.name, len(FIRST)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    seed = config.getoption("randomly_seed")
    terminalreporter.write_line(f'random order: ARGS="--randomly-seed {seed}" repeats it')
