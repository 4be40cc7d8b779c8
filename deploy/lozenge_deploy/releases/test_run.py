"""The tests of a detector, run in its own environment, and the proof that they have passed."""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

from lozenge.durations import text_of
from lozenge.errors import DetectorError
from lozenge_deploy.releases import test_report
from lozenge_deploy.releases.build import digest_of, normalised
from lozenge_deploy.releases.environments import in_environment
from lozenge_deploy.supervision.child import Child
from lozenge_deploy.supervision.temp_dirs import temporary_folder

LIMIT_SECONDS = 600.0
"""The time that the tests of a detector may take, unless a command is given another limit."""
_POLL_SECONDS = 0.05
_OWN_SETTINGS = ("--rootdir=.", "--config-file=pyproject.toml", "-o", "addopts=")
"""The folder's own settings of pytest, but for options that might leave tests out, such as `-k`."""


def proof_of(folder: Path, python: Path) -> Path:
    """A file that exists once all tests in `folder` have passed for this code on this machine, by any command."""
    return python.parents[1] / f"tested-{digest_of(folder)}"


def test_command(python: Path, report: Path, run_in: Path, *more: str) -> list[str]:
    """Runs the tests of the current folder in the detector's `python`; `test_report.read` reads the report.

    It also runs those of `lozenge.testing.invariants`. The tests' code has the folder `run_in` as its current folder,
    as a job has another one than its source. Settings of pytest are the folder's own, without `addopts`: every test
    runs. The environment of the command
    adds pytest alone, by links in `run_in`: a package that both have is the detector's, and one that the detector does
    not declare is missing in its tests as it is in its job. `more` are further arguments of pytest.
    """
    plugins = ["-p", "no:cacheprovider", "-p", "no:randomly", "-p", "lozenge.testing.plugin"]
    names = ["--import-mode=importlib", "-o", "consider_namespace_packages=true"]
    options = ["-q", *names, *plugins, f"--run-in={run_in}", f"--junit-xml={report}", *_OWN_SETTINGS, *more, "."]
    path = f"[*filter(None, sys.path), {str(_linked_pytest(run_in))!r}]"  # the current folder has modules of any name
    code = f"import sys; sys.path[:] = {path}; import pytest; sys.exit(pytest.main({options} + sys.argv[1:]))"
    return [str(python), "-c", code]


def _linked_pytest(parent: Path) -> Path:
    """A new folder in `parent` with a link to all that pytest consists of and requires."""
    folder = parent / "pytest"
    folder.mkdir()
    wanted, found = ["pytest"], set[str]()
    while wanted:
        package = distribution(wanted.pop())
        if (name := normalised(package.name)) in found:
            continue
        found.add(name)
        needed = [Requirement(text) for text in package.requires or ()]
        wanted += [each.name for each in needed if each.marker is None or each.marker.evaluate({"extra": ""})]
        for top in {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
            (folder / top).symlink_to(Path(str(package.locate_file(top))).resolve())
    return folder


@contextmanager
def running_tests(folder: Path, python: Path, limit: float = LIMIT_SECONDS) -> Iterator[Callable[[], None]]:
    """Runs the tests in `folder` concurrently with the block; they end with it.

    It yields a function that waits for them, and names each on stderr when it has ended. That raises DetectorError,
    with their output on stderr, if they fail, if they take more than `limit` seconds, or if no `test_fires` or no
    `test_stays_silent` has passed.
    """
    name, most = folder.name, text_of(timedelta(seconds=limit))
    deadline = time.monotonic() + limit
    with (
        tempfile.TemporaryFile("w+", errors="replace") as output,
        tempfile.TemporaryDirectory() as report_folder,
        temporary_folder() as temporary,
    ):
        report, progress = (Path(report_folder) / file for file in ("report.xml", "progress"))
        progress.touch()
        print(f"testing detector {name}, for at most {most}", file=sys.stderr)
        process = Child(
            test_command(python, report, Path(report_folder), f"--progress={progress}"),
            environment=in_environment(os.environ | temporary, python),
            folder=folder,
            stdout=output,
            stderr=output,
        )

        def failed(what: str, hint: str) -> DetectorError:
            process.end()
            output.seek(0)
            sys.stderr.write(output.read())
            return DetectorError(f"testing {name}: {what}", hint=hint)

        def passed() -> None:
            with progress.open() as lines:
                begun = ""
                while (code := process.poll()) is None:
                    begun = _show(lines) or begun
                    if time.monotonic() > deadline:
                        hint = "make it quicker, or allow more: `lozenge deploy --test-limit 30m`"
                        raise failed(f"its tests have not ended within {most}, the last is {begun or 'none'}", hint)
                    time.sleep(_POLL_SECONDS)
                _show(lines)
            if code:
                raise failed("its tests fail", f"fix them: `lozenge test {name}`")
            if owed := test_report.unproved(test_report.read(report)):
                what = " and ".join(f"{kind}..." for kind in owed)
                raise DetectorError(
                    f"testing {name}: no test {what} has passed",
                    hint=f"a skipped test shows nothing; see `lozenge test {name} -- -rs`",
                )

        try:
            yield passed
        finally:
            process.end()


def _show(lines: Iterable[str]) -> str:
    """Names the tests that have ended since the last call; returns the last that has begun, "" if none has."""
    begun = ""
    for line in lines:
        test = json.loads(line)
        begun = test["test"]
        if test["outcome"]:
            print(f"  {test['outcome']}  {begun}  {test['seconds']:.1f} s", file=sys.stderr)
    return begun
