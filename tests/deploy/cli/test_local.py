"""`lozenge doctor`."""

import json
from pathlib import Path

from tests.deploy.command import invoke


def test_doctor_names_what_is_missing_and_the_fix(checkout: Path) -> None:
    run = invoke("doctor", "-o", "json", cwd=checkout, LOZENGE_KAFKA_BOOTSTRAP="127.0.0.1:9")
    checks = {row["check"]: row for row in json.loads(run.stdout)}
    assert (checks["Python"]["ok"], checks["broker"]["ok"]) == ("yes", "NO")
    assert run.returncode == 1
    assert "`lozenge up` starts one here" in run.stderr
