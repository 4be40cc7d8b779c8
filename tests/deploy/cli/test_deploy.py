"""`lozenge plan` and `lozenge deploy` report what is wrong before they need a broker."""

from pathlib import Path

import pytest

from tests.deploy.cli.conftest import made
from tests.deploy.command import invoke


def test_plan_and_deploy_report_an_unknown_folder_before_they_need_a_broker(checkout: Path) -> None:
    for verb in ("plan", "deploy"):
        run = invoke(verb, "nobody", cwd=checkout, LOZENGE_KAFKA_BOOTSTRAP="127.0.0.1:9")
        assert (run.returncode, "looking for detector nobody" in run.stderr) == (2, True)


@pytest.mark.parametrize("missing", ["test_fires", "test_stays_silent"])
def test_deploy_refuses_a_folder_without_a_firing_and_a_silent_test(checkout: Path, missing: str) -> None:
    made(checkout, "spotter")
    tests = checkout / "detectors" / "spotter" / "test_spotter.py"
    tests.write_text(tests.read_text().replace(f"def {missing}", "def test_something_else"))
    run = invoke("deploy", "spotter", cwd=checkout, LOZENGE_KAFKA_BOOTSTRAP="127.0.0.1:9")
    assert (run.returncode, f"add a test {missing}..." in run.stderr) == (2, True), run.stderr
