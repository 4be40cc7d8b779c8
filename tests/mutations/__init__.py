"""Guards removed one at a time: each patch here takes one away and must turn the test red that it names.

`python -m tests.mutations [GUARD ...]`, which `make mutants` runs, does that on a copy of the sources. A guard whose
test stays green is not tested. The head of a patch says what it removes and names the test; the rest is a unified diff.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("shared", "upstream", "downstream", "deploy")
"""Source roots; an import finds the copy's before those that are installed."""
_TEST = re.compile(r"^Test: (\S.*)$", re.MULTILINE)
_PATCHED = re.compile(r"^\+\+\+ b/(\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Guard:
    """One guard, by the patch that removes it and the test that must then fail."""

    name: str
    patch: Path
    test: str

    def files(self) -> set[str]:
        """The patch, the sources that it changes and the file of its test."""
        patched = _PATCHED.findall(self.patch.read_text("utf-8"))
        return {str(self.patch.relative_to(ROOT)), self.test.partition("::")[0], *patched}

    def apply(self, tree: Path, *, only_look: bool = False) -> str:
        """Applies the patch to the sources in `tree`; returns git's complaint, "" if it applied."""
        look = ["--check"] if only_look else []
        command = ["git", "apply", *look, str(self.patch)]
        return subprocess.run(command, cwd=tree, capture_output=True, text=True).stderr

    def run(self, tree: Path) -> "subprocess.CompletedProcess[str]":
        """Runs the test on the sources in `tree`."""
        paths = os.pathsep.join(str(tree / source) for source in SOURCES)
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", self.test]
        environment = os.environ | {"PYTHONPATH": paths}
        return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)


def guards() -> list[Guard]:
    """Every guard, by name."""
    found = []
    for patch in sorted(Path(__file__).parent.glob("*.patch")):
        [test] = _TEST.findall(patch.read_text("utf-8"))
        found.append(Guard(patch.stem, patch, test))
    return found


def changed_since(commit: str) -> set[str]:
    """The files that differ from those of a commit."""
    command = ["git", "diff", "--name-only", commit]
    return set(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines())


def copied(target: Path) -> Path:
    """The sources and tests, copied to `target` as they are on disk."""
    ignored = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "*.egg-info")
    return Path(shutil.copytree(ROOT, target, ignore=ignored))
