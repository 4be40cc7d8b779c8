"""An error of an author's code is named with the file, line and function of that code."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from lozenge.detector.author_error import described
from lozenge.errors import EncodeError

CODE = """import json
import math


def deep(x):
    return math.log(x)


def step(x):
    return deep(x)


def reads(text):
    return json.loads(text)
"""
WORKER = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/opt/lib/pyspark/worker.py", line 2000, in main
    process()
  File "/env/lib/python3.11/site-packages/big_cash.py", line 12, in score
    return math.log(x)
  File "/env/lib/python3.11/site-packages/numpy/core.py", line 7, in log
    raise ValueError("math domain error")
ValueError: math domain error
"""


class PythonException(Exception):
    """As PySpark's."""


PythonException.__module__ = "pyspark.errors"


def module(folder: Path) -> Any:
    file = folder / "big_cash.py"
    file.write_text(CODE)
    spec = importlib.util.spec_from_file_location("big_cash", file)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_the_deepest_line_of_the_detector_is_named(tmp_path: Path) -> None:
    detector = module(tmp_path)
    with pytest.raises(ValueError, match="math domain error") as found:
        detector.step(0)
    found.value.__traceback__ = found.value.__traceback__ and found.value.__traceback__.tb_next
    assert described(found.value) == "ValueError: math domain error (big_cash.py line 6, in deep)"


def test_a_library_that_raises_is_not_blamed(tmp_path: Path) -> None:
    detector = module(tmp_path)
    with pytest.raises(json.JSONDecodeError) as found:
        detector.reads("{")
    found.value.__traceback__ = found.value.__traceback__ and found.value.__traceback__.tb_next
    assert described(found.value).endswith("(big_cash.py line 14, in reads)")


def test_the_error_of_a_python_worker_is_the_authors_and_not_sparks() -> None:
    assert described(PythonException(WORKER)) == "ValueError: math domain error (big_cash.py line 12, in score)"


def test_an_expression_is_named_by_the_line_where_it_was_written() -> None:
    text = '[DIVIDE_BY_ZERO] Division by zero.\n== DataFrame ==\n"divide" was called from\n/x/big_cash.py:12\n'
    assert described(PythonException(text)) == "[DIVIDE_BY_ZERO] Division by zero. (big_cash.py line 12)"
    in_a_job = text.replace(
        "/x/big_cash.py:12", "java.base/jdk.internal.reflect.NativeMethodAccessorImpl.invoke0(Native)"
    )
    assert described(PythonException(in_a_job)) == "[DIVIDE_BY_ZERO] Division by zero."


def test_what_the_platform_says_itself_is_said_as_it_is() -> None:
    assert described(EncodeError("its score is null", hint="do something")) == "its score is null"
    assert described(PythonException("An error occurred\nat x")) == "An error occurred"
    assert described(ValueError()) == "ValueError"
    assert described(math_error()) == "ValueError: math domain error"


def math_error() -> ValueError:
    """Without a stack, as after a transfer between processes."""
    return ValueError("math domain error")
