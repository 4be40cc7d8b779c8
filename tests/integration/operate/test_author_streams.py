"""New detectors of streams that have nothing in common with payments pass their own tests, some under every fault.

They run in this process, on its Spark.
"""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from pyspark.sql import SparkSession

from lozenge.contracts.detector_kind import DetectorKind
from lozenge.testing import runner
from lozenge.testing.case_generator import gather
from lozenge.testing.invariants import INVARIANTS, Subject
from lozenge.testing.runner import Run, RunInput
from lozenge_deploy.cli.author.scaffold import write
from tests.alert_streams import LARGE
from tests.made_up_streams import SHAPES, key_of, written

pytestmark = pytest.mark.integration

UNDER_FAULTS = {("sensors", "rule"), ("sensors", "stateful"), ("doors", "aggregate"), ("beats", "stateful")}


def functions_in(folder: Path) -> list[Callable[[], None]]:
    """The tests of a detector, imported."""
    spec = importlib.util.spec_from_file_location(f"tests_of_{folder.name}", folder / f"test_{folder.name}.py")
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [found for name, found in vars(module).items() if name.startswith("test_")]


@pytest.mark.parametrize("kind", list(DetectorKind))
@pytest.mark.parametrize("name", SHAPES)
def test_a_new_detector_of_any_stream_passes_its_tests(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: DetectorKind
) -> None:
    stream = written(tmp_path / "streams").get(name)
    monkeypatch.setenv("LOZENGE_STREAMS", str(tmp_path / "streams"))
    runs: list[tuple[RunInput, Run]] = []
    monkeypatch.setattr(runner, "_listeners", [lambda case, result: runs.append((case, result))])
    write(tmp_path, f"new_{name}_{kind}", kind, "tests", stream, key=key_of(stream))
    found = functions_in(tmp_path / f"new_{name}_{kind}")
    assert len(found) >= 3
    for test in found:
        test()
    if (name, kind) in UNDER_FAULTS:
        pass_every_fault(runs)


def test_a_new_detector_of_alerts_passes_its_tests_under_every_fault(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[tuple[RunInput, Run]] = []
    monkeypatch.setattr(runner, "_listeners", [lambda case, result: runs.append((case, result))])
    write(tmp_path, "new_series", DetectorKind.STATEFUL, "tests", LARGE)
    for test in functions_in(tmp_path / "new_series"):
        test()
    pass_every_fault(runs)


def pass_every_fault(runs: list[tuple[RunInput, Run]]) -> None:
    """Their events raise alerts, and the same ones under each fault."""
    case = gather(runs, seed=1)
    assert case is not None
    subject = Subject(case, seed=1)
    assert subject.baseline
    for check in INVARIANTS.values():
        check(subject)
