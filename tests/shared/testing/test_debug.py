"""`python -m lozenge.testing.debug` takes the modules that a job takes."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.shared.detector_folder import write_detector

MODULE = """from pyspark.sql import functions as F

from lozenge import Detector, Settings


@F.{decorator}("double")
def risk(a):
    return a


print("its types are read:", risk.returnType.simpleString())
detector = None
"""


@pytest.mark.parametrize("decorator", ["udf", "pandas_udf"])
def test_a_function_names_its_type_in_words_before_spark_has_started(tmp_path: Path, decorator: str) -> None:
    folder = write_detector(tmp_path, "made_up", module=MODULE.format(decorator=decorator))
    command = [sys.executable, "-m", "lozenge.testing.debug", str(folder)]
    run = subprocess.run(command, input="[]", capture_output=True, text=True)
    assert "its types are read: double" in run.stdout + run.stderr
    assert "its module has no `detector = Detector(...)`" in run.stderr, "no session is started for that"
