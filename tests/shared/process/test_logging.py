"""Logs go to standard error, and nothing is configured at import."""

import subprocess
import sys

import pytest


def run(program: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)


def test_an_import_configures_no_logging() -> None:
    modules = "lozenge.process.logging, lozenge_deploy.cli.__main__, lozenge_downstream.service"
    assert run(f"import structlog, {modules}; print(structlog.is_configured())").stdout == "False\n"


@pytest.mark.parametrize("configured", ["", "logging.configure('app'); "])
def test_a_log_line_goes_to_standard_error(configured: str) -> None:
    logged = run(f"from lozenge.process import logging; {configured}logging.logger().warning('written', topic='t')")
    assert logged.stdout == ""
    assert "written" in logged.stderr
