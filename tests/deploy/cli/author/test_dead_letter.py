"""`lozenge dlq debug` runs the event of a dead letter in the code of the detector's folder."""

import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lozenge.errors import DetectorError, UsageError
from lozenge_deploy.cli.author import dead_letter
from lozenge_deploy.cli.printing.output import OutputFormat
from lozenge_deploy.observe import dead_letter_report
from lozenge_deploy.releases import environments

EVENT = {"event_id": "e1", "amount": "0"}
ALERT = {"entity": "card-1", "severity": "low", "score": 0.5, "reason": "seen", "labels": {}}


class Kit:
    """What is there, and what the detector makes of it."""

    def __init__(self) -> None:
        self.value: Any = EVENT
        self.result: dict[str, Any] = {"alerts": [], "dead_letters": []}
        self.code = 0
        self.given: list[Any] = []

    def run(self, command: list[str], **how: Any) -> Any:
        assert command[1:3] == ["-m", "lozenge.testing.debug"]
        self.given.append(json.loads(how["input"]))
        return SimpleNamespace(returncode=self.code, stdout=json.dumps(self.result))


@pytest.fixture
def kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kit:
    found = Kit()
    (tmp_path / "spotter").mkdir()
    (tmp_path / "spotter" / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path / "spotter")
    details = {"reason": "timer: no"}
    monkeypatch.setattr(dead_letter_report, "details", lambda *_, **__: details | {"value": found.value})
    monkeypatch.setattr(environments, "environment_of", lambda folder: Path("/env/bin/python"))
    monkeypatch.setattr(environments, "in_environment", lambda variables, python: dict(variables))
    monkeypatch.setattr(subprocess, "run", found.run)
    return found


def test_the_alerts_of_the_event_are_shown(kit: Kit, capsys: pytest.CaptureFixture[str]) -> None:
    kit.result["alerts"] = [ALERT]
    dead_letter.debug(".", "0:7", OutputFormat.TABLE)
    assert kit.given == [[EVENT]]
    assert "seen" in capsys.readouterr().out


def test_the_input_of_a_detector_of_alerts_is_an_alert(kit: Kit, capsys: pytest.CaptureFixture[str]) -> None:
    kit.value = {"alert_id": "a1", "entity": {"type": "card", "id": "card-1"}}
    dead_letter.debug(".", "0:7", OutputFormat.TABLE)
    assert kit.given == [[kit.value]]


def test_an_event_without_an_alert_is_said_to_be_processed(kit: Kit, capsys: pytest.CaptureFixture[str]) -> None:
    dead_letter.debug(".", "0:7", OutputFormat.TABLE)
    assert "spotter: the event is processed, and raises no alert" in capsys.readouterr().out


def test_an_event_that_fails_again_is_an_error_with_its_line(kit: Kit, capsys: pytest.CaptureFixture[str]) -> None:
    kit.result["dead_letters"] = [
        {"event_id": "e1", "error": "ValueError: no (spotter.py line 3, in step)", "event": {}}
    ]
    with pytest.raises(
        DetectorError, match=r"dead letter 0:7 of spotter: ValueError: no \(spotter.py line 3, in step\)"
    ):
        dead_letter.debug(".", "0:7", OutputFormat.JSON)
    assert json.loads(capsys.readouterr().out)[0]["dead_letters"] == kit.result["dead_letters"]


def test_a_dead_letter_without_an_event_is_refused(kit: Kit) -> None:
    for value in ({"count": 3}, "0a0b", None):
        kit.value = value
        with pytest.raises(UsageError, match="debugging dead letter 0:7 of spotter: it holds no event: timer: no"):
            dead_letter.debug(".", "0:7", OutputFormat.TABLE)
    assert kit.given == []


def test_a_detector_that_cannot_be_loaded_says_so(kit: Kit) -> None:
    kit.code = 1
    with pytest.raises(DetectorError, match="it did not run"):
        dead_letter.debug(".", "0:7", OutputFormat.TABLE)
