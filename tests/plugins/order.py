"""Says in which random order a run was, and keeps together what shares a fixture when several workers share the tests.

With `--dist loadgroup` each test goes to the next free worker. Tests that use a fixture of their module, such as a
broker, would build it in every worker, and the promises of a detector need the events of its tests: such a module goes
to one worker as a whole.
"""

from collections.abc import Generator

import pytest

from lozenge.testing.plugin import tests_a_detector


@pytest.hookimpl(wrapper=True, tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, None, None]:
    shared = {
        id(module): module for item in items if (module := item.getparent(pytest.Module)) and _shares(item, module)
    }
    for module in shared.values():
        module.add_marker(pytest.mark.xdist_group(module.nodeid))
    return (yield)


def _shares(item: pytest.Item, module: pytest.Module) -> bool:
    info = getattr(item, "_fixtureinfo", None)
    fixtures = [fixture for found in info.name2fixturedefs.values() for fixture in found] if info else []
    return tests_a_detector(module) or any(fixture.scope in ("class", "module") for fixture in fixtures)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    seed = config.getoption("randomly_seed")
    terminalreporter.write_line(f'random order: ARGS="--randomly-seed {seed}" repeats it')
