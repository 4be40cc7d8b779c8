"""Every verb is described, and no document names one that does not exist."""

import re
from pathlib import Path

import pytest

from tests.documents import cli
from tests.documents.page import ROOT

DOCUMENTS = [ROOT / "CHANGELOG.md", ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_every_verb_has_a_section_and_a_sentence() -> None:
    text = cli.reference()
    sections = [line.removeprefix("### ") for line in text.splitlines() if line.startswith("### ")]
    rows = [line for line in text.splitlines() if line.startswith("| [`lozenge ")]
    assert {"lozenge deploy", "lozenge dlq replay", "lozenge status"} <= set(sections)
    assert len(rows) == len(sections)
    assert not [row for row in rows if row.endswith("|  |")]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_names_existing_verbs(document: Path) -> None:
    verbs = re.findall(r"^### lozenge (.+)$", cli.PAGE.committed(), re.MULTILINE)
    groups = {verb.split()[0] for verb in verbs if " " in verb}
    named = re.findall(r"`lozenge ([a-z][a-z-]*)(?: ([a-z]+))?", document.read_text("utf-8"))
    unknown = {
        f"lozenge {first} {second}".strip()
        for first, second in named
        if (f"{first} {second}" if first in groups and second else first) not in {*verbs, *groups}
    }
    assert not unknown
