"""`docs/cli.md` is what the command says of itself."""

import difflib
import re
from pathlib import Path

import pytest

from tests.documents import cli

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "CHANGELOG.md", ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_page_is_generated_from_the_command() -> None:
    committed, generated = cli.PAGE.read_text("utf-8"), cli.page()
    difference = difflib.unified_diff(
        committed.splitlines(), generated.splitlines(), "docs/cli.md", "the command's help", lineterm="", n=1
    )
    assert committed == generated, "\n".join([*difference, "", "Run `make docs` and commit docs/cli.md."])


def test_every_verb_has_a_section_and_a_sentence() -> None:
    text = cli.reference()
    sections = [line.removeprefix("### ") for line in text.splitlines() if line.startswith("### ")]
    rows = [line for line in text.splitlines() if line.startswith("| [`lozenge ")]
    assert {"lozenge deploy", "lozenge dlq replay", "lozenge status"} <= set(sections)
    assert len(rows) == len(sections)
    assert not [row for row in rows if row.endswith("|  |")]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_names_existing_verbs(document: Path) -> None:
    verbs = re.findall(r"^### lozenge (.+)$", cli.PAGE.read_text("utf-8"), re.MULTILINE)
    groups = {verb.split()[0] for verb in verbs if " " in verb}
    named = re.findall(r"`lozenge ([a-z][a-z-]*)(?: ([a-z]+))?", document.read_text("utf-8"))
    unknown = {
        f"lozenge {first} {second}".strip()
        for first, second in named
        if (f"{first} {second}" if first in groups and second else first) not in {*verbs, *groups}
    }
    assert not unknown
