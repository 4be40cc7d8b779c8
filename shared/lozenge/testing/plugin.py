"""A pytest plugin that checks every detector's invariants after its own tests, on the events of those tests.

`-p lozenge.testing.plugin` adds the tests `fault[...]` of `lozenge.testing.invariants` after each
`<name>/test_<name>.py`. Nobody writes them. Equal values of `--fault-seed` make equal events.

Tests import the modules of their detector's folder as the job does: `from <name>.features import ...`. `--run-in` is
the current folder of their code: a job's current folder is not that of its detector either.
"""

import json
import os
from collections.abc import Generator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from lozenge.detector.package import is_detector, provide
from lozenge.errors import LozengeError
from lozenge.testing.case_generator import gather
from lozenge.testing.invariants import INVARIANTS, Subject
from lozenge.testing.runner import DeadLetterRecord, Run, RunInput, on_run

_SHOWN = 5
"""Dead letters of a test that are shown."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fault-seed", type=int, default=1, help="another number makes other events (1)")
    parser.addoption("--progress", metavar="FILE", help="where each test is a line of JSON when it begins and ends")
    parser.addoption("--run-in", metavar="FOLDER", help="the current folder of the tests' code")


@pytest.hookimpl(tryfirst=True)  # before the folders' own conftest.py are imported
def pytest_load_initial_conftests(args: Sequence[str]) -> None:
    for given in args:
        _provide(Path(given.partition("::")[0]).resolve())


@pytest.hookimpl(tryfirst=True)
def pytest_collect_directory(path: Path) -> None:
    _provide(path)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """A detector's module is no file of tests, even if its name begins as theirs."""
    folder = collection_path.parent
    return True if collection_path.name == f"{folder.name}.py" and is_detector(folder) else None


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(DeadLettersOfTests())
    if file := config.getoption("--progress"):
        config.pluginmanager.register(ProgressLines(Path(file)))


def pytest_sessionstart(session: pytest.Session) -> None:
    if folder := session.config.getoption("--run-in"):
        os.chdir(folder)


@pytest.hookimpl(tryfirst=True)  # so that -k and markers select among these tests too
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    modules = {id(module): module for item in items if (module := item.getparent(pytest.Module))}
    for module in filter(_tests_a_detector, modules.values()):
        recorder = RunRecorder(module, config.getoption("--fault-seed"))
        faults = [FaultTest.from_parent(module, name=f"fault[{fault}]", recorder=recorder) for fault in INVARIANTS]
        last = max(at for at, item in enumerate(items) if item.getparent(pytest.Module) is module)
        items[last + 1 : last + 1] = faults


class ProgressLines:
    """Writes down which test begins and how it ends, for a reader that waits."""

    def __init__(self, file: Path) -> None:
        self._file = file.resolve()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """One line without an outcome."""
        self._write(nodeid, "", 0.0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One line with the outcome; a test that does not come to its call ends in its set-up."""
        if report.when == "call" or not report.passed:
            self._write(report.nodeid, report.outcome, report.duration)

    def _write(self, nodeid: str, outcome: str, seconds: float) -> None:
        line = {"test": nodeid.partition("::")[2] or nodeid, "outcome": outcome, "seconds": seconds}
        with self._file.open("a") as lines:
            lines.write(json.dumps(line) + "\n")


class DeadLettersOfTests:
    """Shows which events of a failed test became dead letters: there, a detector that raises is no error."""

    def __init__(self) -> None:
        self._found: list[DeadLetterRecord] = []
        on_run(lambda _, result: self._found.extend(result.dead_letters))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Adds a section to the report, which pytest prints if the test fails."""
        self._found.clear()
        try:
            return (yield)
        finally:
            if self._found:
                lines = [f"event {each.event_id}: {each.error}" for each in self._found[:_SHOWN]]
                if more := len(self._found) - len(lines):
                    lines.append(f"and {more} more")
                item.add_report_section("call", "dead letters", "\n".join(lines))


class RunRecorder:
    """Records what the tests of one module give to `run`, and makes one stream of it."""

    def __init__(self, module: pytest.Module, seed: int) -> None:
        self._folder, self._seed = module.path.parent, seed
        self._runs: list[tuple[RunInput, Run]] = []
        on_run(self._record)

    @cached_property
    def subject(self) -> Subject | None:
        """The detector on that stream; None if no event of it raises an alert."""
        case = gather(self._runs, self._seed)
        return Subject(case, self._seed) if case is not None else None

    def _record(self, case: RunInput, result: Run) -> None:
        if case.loaded.folder == self._folder:
            self._runs.append((case, result))


class FaultTest(pytest.Item):
    """Checks one invariant, after the tests whose events it uses."""

    def __init__(self, *, recorder: RunRecorder, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._recorder = recorder
        self._fault = self.name.removeprefix("fault[").removesuffix("]")

    def runtest(self) -> None:
        """Passes, or fails with the alerts that were lost or added. Skips if there are no alerts to compare."""
        subject = self._recorder.subject
        if subject is None or not subject.baseline:
            pytest.skip("no test gives run() events that raise an alert")
        INVARIANTS[self._fault](subject)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The message without a traceback, if it is written for people."""
        if isinstance(excinfo.value, AssertionError | LozengeError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """File, line and name in a report."""
        return self.path, None, self.name


def _tests_a_detector(module: pytest.Module) -> bool:
    folder = module.path.parent
    return module.path.name == f"test_{folder.name}.py" and (folder / f"{folder.name}.py").is_file()


def _provide(path: Path) -> None:
    """Makes the detector importable whose folder is `path` or holds it."""
    if folder := next(filter(is_detector, (path, *path.parents)), None):
        provide(folder)
