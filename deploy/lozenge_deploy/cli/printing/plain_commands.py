"""Commands that say in words for a person what is wrong with the value of an option."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from pydantic import ValidationError
from typer.core import TyperCommand, TyperGroup

from lozenge import validation
from lozenge_deploy.cli.printing.terminal import visible


class PlainCommand(TyperCommand):
    """One command."""

    def make_context(self, *given: Any, **more: Any) -> typer.Context:
        """Reads the options."""
        with _plain():
            return super().make_context(*given, **more)  # type: ignore[return-value]


class PlainGroup(TyperGroup):
    """A command of commands, each of which reads its options when the group is invoked."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the command that is meant."""
        with _plain():
            return super().invoke(ctx)


@contextmanager
def _plain() -> Iterator[None]:
    """Typer says what pydantic says of the value of an option, as it is."""
    try:
        yield
    except typer.BadParameter as error:
        if isinstance(error.__cause__, ValidationError):
            error.message = visible("; ".join(each["msg"] for each in validation.problems(error.__cause__)))
        raise
