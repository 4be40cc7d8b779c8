"""The order of a run: random, and so that it can be repeated; the files that take longest begin first.

Processes that share a run take whole files. A long file that began last would leave the others without work.
"""

import pytest

FIRST = (
    "test_campaign.py",
    "test_dead_letters.py",
    "test_upstream.py",
    "test_real_jobs.py",
    "test_author.py",
    "test_releases.py",
    "test_realtime_aggregates.py",
    "test_realtime.py",
    "test_exactly_once.py",
    "test_topic_versions.py",
    "test_cut_over.py",
    "test_invariants.py",
    "test_stream_releases.py",
    "test_changes.py",
    "test_realtime_kills.py",
    "test_downstream.py",
    "test_card_velocity.py",
    "test_guarantees.py",
    "test_moves.py",
    "test_cut_over_crashes.py",
    "test_offsets.py",
    "test_downstream_evaluation.py",
    "test_labelled_data.py",
    "test_backtest.py",
    "test_broker.py",
    "test_agents.py",
    "test_queries.py",
    "test_instances.py",
)
"""Files with more than half a minute of work, the longest first."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ranks = {name: rank for rank, name in enumerate(FIRST)}
    items.sort(key=lambda item: ranks.get(item.path.name, len(FIRST)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    seed = config.getoption("randomly_seed")
    terminalreporter.write_line(f'random order: ARGS="--randomly-seed {seed}" repeats it')
