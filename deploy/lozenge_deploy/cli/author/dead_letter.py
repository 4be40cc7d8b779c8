"""`lozenge dlq debug`: one dead letter in the code of a detector's folder, on this machine."""

import json
import os
import subprocess
from typing import Annotated, Any

import typer

from lozenge.errors import DetectorError, UsageError
from lozenge_deploy.cli.options import NAME, OUTPUT, app_of, folder_of
from lozenge_deploy.cli.printing.output import OutputFormat, show
from lozenge_deploy.cli.printing.terminal import echo


def debug(
    name: NAME,
    position: Annotated[str, typer.Argument(help='Partition and offset in the dead-letter topic, such as "2:9120".')],
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Run a dead letter's event in the code of the detector's folder, without publishing anything.

    Shows its alerts, or fails with the error, and the file, line and function that raised it. A fold begins without
    state.
    """
    from lozenge.contracts.record import parse_position
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.observe.dead_letter_report import details
    from lozenge_deploy.releases.environments import environment_of, in_environment
    from lozenge_deploy.supervision.temp_dirs import temporary_folder

    folder, where = folder_of(name), parse_position(position)
    found = details(KafkaSettings.load(), app_of(name), where, card_numbers=True)
    if not isinstance(found["value"], dict) or not {"event_id", "alert_id"} & found["value"].keys():
        raise UsageError(
            f"debugging dead letter {position} of {folder.name}: it holds no event: {found['reason']}",
            hint=f"`lozenge dlq show {folder.name} {position}` shows it",
        )
    with temporary_folder() as temporary:
        python = environment_of(folder)
        run = subprocess.run(
            [str(python), "-m", "lozenge.testing.debug", str(folder)],
            env=in_environment(os.environ | temporary, python),
            cwd=python.parents[1],  # or Python would import modules of the current folder
            input=json.dumps([found["value"]]),
            stdout=subprocess.PIPE,
            text=True,
        )
    if run.returncode:
        raise DetectorError(f"debugging dead letter {position} of {folder.name}: it did not run", hint="see above")
    result: dict[str, Any] = json.loads(run.stdout)
    if output is OutputFormat.JSON:
        show([result], output)
    elif result["alerts"]:
        show(
            [{key: alert[key] for key in ("entity", "severity", "score", "reason")} for alert in result["alerts"]],
            output,
        )
    elif not result["dead_letters"]:
        echo(f"{folder.name}: the event is processed, and raises no alert")
    for dead_letter in result["dead_letters"]:
        raise DetectorError(
            f"processing dead letter {position} of {folder.name}: {dead_letter['error']}",
            hint=f"fix it and try again; `lozenge dlq show {folder.name} {position}` has the event",
        )
