"""Logs go to standard error, and nothing is configured at import."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


def run(program: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)


def test_an_import_configures_no_logging() -> None:
    modules = "lozenge.process.logging, lozenge_deploy.cli.__main__, lozenge_downstream.service"
    assert run(f"import structlog, {modules}; print(structlog.is_configured())").stdout == "False\n"


def test_a_line_that_cannot_be_written_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"." * 100)
    program = (
        "from lozenge.process import logging; from tests.full_disk import files_of_at_most\n"
        "logging.configure('app')\n"
        "with files_of_at_most(100): logging.logger().error('lost')\n"
        "logging.logger().error('written')"
    )
    with (tmp_path / "log").open("ab") as log:
        subprocess.run([sys.executable, "-c", program], stderr=log, check=True)
    assert "written" in (tmp_path / "log").read_text()
    assert "lost" not in (tmp_path / "log").read_text()


@pytest.mark.parametrize("configured", ["", "logging.configure('app'); "])
def test_a_line_goes_to_standard_error_as_it_is_when_the_line_is_written(configured: str) -> None:
    program = (
        "import io, sys; from lozenge.process import logging\n"
        f"terminal, sys.stderr = sys.stderr, io.StringIO()\n{configured}logging.logger().warning('first')\n"
        "sys.stderr.close(); sys.stderr = terminal; logging.logger().warning('second')"
    )
    logged = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "second" in logged.stderr


@pytest.mark.parametrize("configured", ["", "logging.configure('app'); "])
def test_a_log_line_goes_to_standard_error(configured: str) -> None:
    logged = run(f"from lozenge.process import logging; {configured}logging.logger().warning('written', topic='t')")
    assert logged.stdout == ""
    assert "written" in logged.stderr


def test_an_exception_that_a_library_logs_is_a_text() -> None:
    program = (
        "import logging; from lozenge.process import logging as ours; ours.configure('app')\n"
        "try: raise ValueError('cause')\n"
        "except ValueError: logging.getLogger('library').error('sending', exc_info=True)"
    )
    logged = json.loads(run(program).stderr)
    assert logged["exception"].endswith("ValueError: cause")
    assert "exc_info" not in logged
