"""`lozenge stream test`: whether the samples of a stream become what they must. A deploy asks it first."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from lozenge_deploy.cli.options import OUTPUT
from lozenge_deploy.cli.printing.output import OutputFormat, show, show_warnings
from lozenge_deploy.cli.printing.terminal import echo, print_json

TEST = Annotated[
    bool, typer.Option("--test/--no-test", help="Run the samples first, or deploy without; the audit log says so.")
]


def run_samples(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A stream.")],
    source: Annotated[str, typer.Option(help="Only the samples of this source.")] = "",
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Run a stream's samples: raw records, and what must become of them.

    They are in `samples/<source>.toml` of its folder. Upstream's own code runs them; nothing is written, and no broker
    is needed. Exit code 1: something else becomes of one. Exit code 2: there are none, or a mapping or sample is wrong.
    """
    from lozenge_deploy.operations.streams import upstream_tools

    found = upstream_tools.run_samples(name, source)
    _show(found, output)
    if _failed(found):
        raise typer.Exit(1)


def require_passed(name: str, output: OutputFormat) -> None:
    """Runs the samples of a stream that is to be deployed; a source without any is a warning.

    Raises ChangeFailed where one becomes something else, after all of them were shown.
    """
    from lozenge_deploy.control.client import ChangeFailed
    from lozenge_deploy.operations.streams import upstream_tools

    found = upstream_tools.run_samples(name, or_none=True)
    if failed := _failed(found):
        _show(found, output)
        raise ChangeFailed(
            f"deploying the stream {name}: {failed} of its {len(found['samples'])} samples become something else",
            hint=f"nothing has changed. Fix the mapping or the sample: `lozenge stream test {name}` runs them; "
            "--no-test deploys without",
        )
    _warn(found)


def _show(found: Mapping[str, Any], output: OutputFormat) -> None:
    if output is OutputFormat.JSON:
        print_json(found)
        return
    _warn(found)
    failures = [
        {"source": each["source"], "sample": each["sample"], **failure, "field": failure["field"] or "-"}
        for each in found["samples"]
        for failure in each["failures"]
    ]
    if failures:
        show(failures, output)
    failed = _failed(found)
    echo(f"{len(found['samples']) - failed} passed" + (f", {failed} failed" if failed else ""))


def _warn(found: Mapping[str, Any]) -> None:
    show_warnings(f"the source {each} has no samples" for each in found["without"])


def _failed(found: Mapping[str, Any]) -> int:
    """How many samples become something else."""
    return sum(bool(each["failures"]) for each in found["samples"])
