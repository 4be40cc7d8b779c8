"""Pytest shows every promise of a detector after its own tests, on the events of those tests; nobody writes a test.

Loaded with `-p lozenge.testing.plugin`, it adds the tests `fault[...]` of `lozenge.testing.invariants` behind each
`<name>/test_<name>.py`. The same `--fault-seed` makes the same events.
"""

from functools import cached_property
from typing import Any

import pytest

from lozenge.errors import LozengeError
from lozenge.testing.case_generator import gather
from lozenge.testing.invariants import PROMISES, Subject
from lozenge.testing.runner import Case, Run, listen


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fault-seed", type=int, default=1, help="another number makes other events (1)")


@pytest.hookimpl(tryfirst=True)  # so that -k and markers choose among these tests too
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    modules = {id(module): module for item in items if (module := item.getparent(pytest.Module))}
    for module in filter(_tests_a_detector, modules.values()):
        evidence = Evidence(module, config.getoption("--fault-seed"))
        faults = [FaultTest.from_parent(module, name=f"fault[{fault}]", evidence=evidence) for fault in PROMISES]
        last = max(at for at, item in enumerate(items) if item.getparent(pytest.Module) is module)
        items[last + 1 : last + 1] = faults


class Evidence:
    """What the tests of one module have given to `run`, and the stream that is made of it."""

    def __init__(self, module: pytest.Module, seed: int) -> None:
        self._folder, self._seed = module.path.parent, seed
        self._runs: list[tuple[Case, Run]] = []
        listen(self._add)

    @cached_property
    def subject(self) -> Subject | None:
        """The detector on that stream; None if nothing in it raises an alert."""
        case = gather(self._runs, self._seed)
        return Subject(case, self._seed) if case is not None else None

    def _add(self, case: Case, told: Run) -> None:
        if case.loaded.folder == self._folder:
            self._runs.append((case, told))


class FaultTest(pytest.Item):
    """One promise, shown after the tests whose events it takes."""

    def __init__(self, *, evidence: Evidence, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._evidence = evidence
        self._fault = self.name.removeprefix("fault[").removesuffix("]")

    def runtest(self) -> None:
        """Passes, fails with what was lost or added, or is skipped where there is nothing to lose."""
        subject = self._evidence.subject
        if subject is None or not subject.plain:
            pytest.skip("no test gives run() events that raise an alert")
        PROMISES[self._fault](subject)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The sentence alone, where it is meant for a person."""
        if isinstance(excinfo.value, AssertionError | LozengeError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """Where it stands in a report."""
        return self.path, None, self.name


def _tests_a_detector(module: pytest.Module) -> bool:
    folder = module.path.parent
    return module.path.name == f"test_{folder.name}.py" and (folder / f"{folder.name}.py").is_file()
