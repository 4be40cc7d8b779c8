"""`docs/cli.md` is what the command says of itself."""

import difflib

from tests.documents import cli


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
