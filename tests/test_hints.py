"""What an error or a page names for a person to type exists: the command, and each of its options."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from lozenge_deploy.cli.__main__ import app

ROOT = Path(__file__).parents[1]
COMMAND = typer.main.get_command(app)
SOURCES = [file for root in ("shared", "deploy", "upstream", "downstream") for file in (ROOT / root).rglob("*.py")]
PAGES = [
    ROOT / "README.md",
    ROOT / "detectors" / "README.md",
    *(ROOT / "docs").glob("*.md"),
    *ROOT.glob("docs/operations/*.md"),
]
NAMED = re.compile(r"`lozenge ((?:--debug )?[a-z][^`]*)`")


def named() -> Iterator[tuple[str, str]]:
    """Where a command is named, and how."""
    for file in [*SOURCES, *PAGES]:
        text = re.sub(r'"\s*\n\s*f?"', "", file.read_text("utf-8"))  # a text that is divided into several lines
        for found in NAMED.finditer(text):
            yield file.relative_to(ROOT).as_posix(), " ".join(found[1].split())


def problem(words: list[str]) -> str | None:
    """What is wrong with a command line, whatever its values are."""
    command: Any = COMMAND
    words = [word for word in words[: words.index("--") if "--" in words else None] if word != "--debug"]
    while words and hasattr(command, "commands"):
        name = words.pop(0)
        if name not in command.commands:
            return f"there is no command {name}"
        command = command.commands[name]
    options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    given = [word.partition("=")[0].rstrip(",.") for word in words if re.fullmatch(r"--?[a-z][a-z-]*(=.*)?[,.]?", word)]
    unknown = [option for option in given if option not in options | {"--help", "-h"}]
    return f"it has no option {', '.join(unknown)}" if unknown else None


def test_every_command_that_is_named_exists_with_its_options() -> None:
    found = sorted({f"{file}: `lozenge {line}`: {wrong}" for file, line in named() if (wrong := problem(line.split()))})
    assert not found, "\n".join(found)


@pytest.mark.parametrize("line", ["channels nothing", "offsets --nowhere x", "nothing"])
def test_a_command_that_does_not_exist_is_found(line: str) -> None:
    assert problem(line.split())
