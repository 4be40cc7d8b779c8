"""Links between documents lead somewhere, modules and tests that pages name exist, and no page has two versions."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("detectors/**/README.md"))]
ARCHITECTURE = ROOT / "docs" / "architecture.md"
STAGES = {name: ROOT / name / f"lozenge_{name}" for name in ("upstream", "downstream", "deploy")}
PREFIXES = {**STAGES, "lozenge": ROOT / "shared" / "lozenge", "job": ROOT / "shared" / "lozenge" / "job"}
"""What a path on the architecture page may begin with."""


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _broken(page: Path) -> Iterator[str]:
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        if not file.exists():
            yield f"{target}: there is no {file.resolve().relative_to(ROOT)}"
        elif anchor and anchor not in _anchors(file):
            yield f"{target}: {file.name} has no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    assert list(_broken(page)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_page_has_the_marks_of_an_unfinished_merge(page: Path) -> None:
    assert re.findall(r"^(?:<{7}|>{7}) .*", page.read_text("utf-8"), re.MULTILINE) == []


def test_the_page_of_real_sources_names_tests_that_exist() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs" / "real-sources.md").read_text("utf-8")))
    written = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("detectors/**/test_*.py")]
    found = {name for file in written for name in re.findall(r"def (test_\w+)", file.read_text("utf-8"))}
    assert named
    assert sorted(named - found) == []


def test_the_modules_of_the_architecture_page_exist() -> None:
    missing = sorted(name for name in _named() if not _exists(name))
    assert missing == [], f"docs/architecture.md names what is not there: {missing}"


def _named() -> set[str]:
    walk = ARCHITECTURE.read_text("utf-8").split("## The walk of one event")[1].split("## Topics")[0]
    spans = re.findall(r"`([a-z_0-9./]+)`", walk)
    return {span for span in spans if "/" in span and not span.endswith("/")}


def _exists(name: str) -> bool:
    """Whether a module or a package has this path, with one of the prefixes or in one of the stages."""
    first, _, rest = name.partition("/")
    paths = [PREFIXES[first] / rest] if first in PREFIXES else [stage / name for stage in STAGES.values()]
    return any(path.with_suffix(".py").is_file() or path.is_dir() for path in paths)
