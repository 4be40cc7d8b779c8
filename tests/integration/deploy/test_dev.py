"""`lozenge dev` on live traffic; its jobs run without Spark."""

import signal
import subprocess
import sys
from pathlib import Path

from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from tests.deploy.command import surroundings
from tests.deploy.sparkless_environments import install
from tests.integration.deploy.sources import quick_detector
from tests.integration.harness import event, send, wait_for


def test_dev_runs_the_folder_alongside_the_live_release_and_again_after_a_change(
    kafka: KafkaSettings, cache: Path, tmp_path: Path
) -> None:
    folder = quick_detector(tmp_path, "spotter", "rule")
    install(folder, tested=False)
    module = folder / "spotter.py"
    environment = surroundings(**kafka.variables, PYTHONUNBUFFERED="1")
    command = [sys.executable, "-m", "lozenge_deploy.cli", "dev", "spotter"]
    alerts, log = tmp_path / "alerts", tmp_path / "log"
    with alerts.open("wb") as out, log.open("wb") as err:
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=out, stderr=err, process_group=0)
    try:
        wait_for(lambda: log.read_text().count("query starts") == 1 or process.poll() is not None, "its first start")
        assert process.poll() is None, log.read_text()
        send(kafka, [event(1, card="dear", amount="600.00"), event(2, card="cheap", amount="400.00")])
        wait_for(lambda: "dear  medium  600.00" in alerts.read_text(), "its first alert")
        module.write_text(module.read_text().replace("Decimal(500)", "Decimal(300)"))
        wait_for(lambda: log.read_text().count("query starts") == 2, "its second start")
        send(kafka, [event(3, card="cheap", amount="400.00")])
        wait_for(lambda: "cheap  medium  400.00" in alerts.read_text(), "an alert under the new limit")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0, log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
    assert len(alerts.read_text().splitlines()) == 2
    assert not [topic for topic in partitions(kafka) if "spotter" in topic]
