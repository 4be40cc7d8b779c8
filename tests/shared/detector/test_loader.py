"""A detector is loaded from its folder or its environment; each error says what to do."""

import importlib.metadata
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from lozenge.detector import loader, package
from lozenge.detector.loader import from_folder, installed
from lozenge.errors import ConfigError, DetectorError
from lozenge.testing import detector_of
from tests.shared.detector_folder import MODULE, PROJECT, write_detector


@pytest.fixture(autouse=True)
def _modules_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PYTHONPATH", "")
    monkeypatch.setattr(package._finder, "folders", {})
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("made_up"):
            del sys.modules[name]


def test_a_folder_holds_a_detector(tmp_path: Path) -> None:
    loaded = from_folder(write_detector(tmp_path, "made_up"))
    assert (loaded.name, loaded.version, loaded.folder) == ("made_up", "1.0", tmp_path / "made_up")
    assert from_folder(tmp_path / "made_up").detector is loaded.detector


@pytest.mark.parametrize("init", [True, False], ids=["with __init__", "without __init__"])
@pytest.mark.parametrize("written", ["from .sub.features import ONE", "from made_up.sub.features import ONE"])
def test_a_module_imports_others_of_its_folder(tmp_path: Path, init: bool, written: str) -> None:
    folder = write_detector(tmp_path, "made_up", module=f"{written}\n{MODULE}")
    (folder / "sub").mkdir()
    (folder / "sub" / "features.py").write_text("ONE = 1\n")
    for place in (folder, folder / "sub") if init else ():
        (place / "__init__.py").touch()
    assert from_folder(folder).folder == folder
    assert sys.modules["made_up.sub.features"].ONE == 1


def test_two_folders_may_have_modules_of_one_name(tmp_path: Path) -> None:
    for name in ("made_up", "made_up_too"):
        folder = write_detector(tmp_path, name, module=f"from .features import OF\n{MODULE}")
        (folder / "features.py").write_text(f"OF = {name!r}\n")
        from_folder(folder)
    assert [sys.modules[f"{name}.features"].OF for name in ("made_up", "made_up_too")] == ["made_up", "made_up_too"]


def test_a_folder_of_the_same_name_elsewhere_is_another_package(tmp_path: Path) -> None:
    loaded = []
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        folder = write_detector(tmp_path / place, "made_up", module=f"from .features import OF\n{MODULE}")
        (folder / "features.py").write_text(f"OF = {place!r}\n")
        loaded.append(from_folder(folder))
        assert place == sys.modules["made_up.features"].OF
    assert [each.folder.parent.name for each in loaded] == ["one", "two"]


def test_processes_that_inherit_the_environment_import_the_package_and_no_neighbour(tmp_path: Path) -> None:
    for name in ("made_up", "made_up_later"):
        write_detector(tmp_path, name)
    from_folder(tmp_path / "made_up")
    code = "import made_up.made_up, importlib.util as u; print(u.find_spec('made_up_later'))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("None\n", "")


def test_a_module_of_the_folder_that_is_imported_by_its_bare_name_is_refused_with_what_to_write(tmp_path: Path) -> None:
    folder = write_detector(tmp_path, "made_up", module=f"from features import ONE\n{MODULE}")
    (folder / "features.py").write_text("ONE = 1\n")
    with pytest.raises(DetectorError, match=r"\n  -> .*write `from \.features import \.\.\.`"):
        from_folder(folder)


@pytest.mark.parametrize(
    "decorator", ['F.udf("double")', 'F.pandas_udf("a int, b decimal(5, 2)")', 'F.udf("double", True)']
)
def test_a_function_of_python_names_its_type_in_words_before_spark_has_started(tmp_path: Path, decorator: str) -> None:
    module = f"from pyspark.sql import functions as F\n\n\n@{decorator}\ndef risk(a):\n    return a\n\n{MODULE}"
    detector_of(str(write_detector(tmp_path, "made_up", module=module) / "test_made_up.py"))
    assert sys.modules["made_up.made_up"].risk.returnType


@pytest.mark.parametrize("column", ["F.lit(5)", 'F.col("amount")', 'F.expr("amount")', "SparkSession.active()"])
def test_a_column_that_is_built_at_import_is_refused_with_where_it_belongs(
    tmp_path: Path, column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)  # another test of this process may have one
    monkeypatch.setattr(SparkSession, "_instantiatedSession", None)
    imports = "from pyspark.sql import SparkSession\nfrom pyspark.sql import functions as F\n"
    folder = write_detector(tmp_path, "made_up", module=f"{imports}LIMIT = {column}\n{MODULE}")
    with pytest.raises(DetectorError, match=r"\n  -> Spark is not there yet.*in detect\(\)"):
        from_folder(folder)


def test_a_folder_without_its_module_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DetectorError, match=r"made_up\.py does not exist\n  -> a detector is a folder"):
        from_folder(tmp_path / "made_up")


def test_a_module_whose_import_fails_is_refused_with_its_error(tmp_path: Path) -> None:
    path = write_detector(tmp_path, "made_up", module="import a_package_that_nobody_has")
    with pytest.raises(DetectorError, match=r"importing detector made_up: ModuleNotFoundError: .*a_package"):
        from_folder(path)
    assert "made_up" not in sys.modules


def test_a_module_that_ends_the_process_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DetectorError, match="importing detector made_up: SystemExit: 7"):
        from_folder(write_detector(tmp_path, "made_up", module="raise SystemExit(7)"))


def test_a_module_without_a_detector_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DetectorError, match=r"no `detector = Detector\(\.\.\.\)`"):
        from_folder(write_detector(tmp_path, "made_up", module="detect = None"))


def test_a_project_with_another_name_than_its_folder_is_refused(tmp_path: Path) -> None:
    path = write_detector(tmp_path, "made_up", project=PROJECT.replace("{name}", "another"))
    with pytest.raises(DetectorError, match=r"its pyproject\.toml calls it another"):
        from_folder(path)


def test_a_folder_without_a_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DetectorError, match=r"pyproject\.toml is not there"):
        from_folder(write_detector(tmp_path, "made_up", project=None))


def test_a_manifest_with_a_problem_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"tool\.lozenge\.kind \(line 7\)"):
        from_folder(write_detector(tmp_path, "made_up", project=PROJECT.replace('"rule"', '"rul"')))


def test_a_manifest_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = write_detector(tmp_path, "made_up")
    (path / "pyproject.toml").write_bytes(PROJECT.replace("Nothing", "Für").encode("latin-1"))
    with pytest.raises(ConfigError, match=r"reading .*pyproject\.toml: .*\n  -> save it as UTF-8"):
        from_folder(path)


def entry_points(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    points = importlib.metadata.EntryPoints(EntryPoint(n, f"{n}.{n}:detector", loader.GROUP) for n in names)
    monkeypatch.setattr(loader, "entry_points", lambda group: points)


def test_an_unknown_detector_is_refused_with_the_names_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    entry_points(monkeypatch, "made_up_b", "made_up_a")
    with pytest.raises(DetectorError, match="detector large: this environment has made_up_a, made_up_b") as caught:
        installed("large")
    assert "detectors/large" in caught.value.hint
    with pytest.raises(DetectorError, match=r"detector \(the only one\): this environment has made_up_a, made_up_b"):
        installed()


def test_an_environment_without_detectors_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    entry_points(monkeypatch)
    with pytest.raises(DetectorError, match="this environment has none"):
        installed()


def test_an_installed_detector_is_loaded_by_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(write_detector(tmp_path, "made_up").parent))
    entry_points(monkeypatch, "made_up")
    assert installed().name == installed("made_up").name == "made_up"


def test_an_installed_detector_whose_import_fails_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(write_detector(tmp_path, "made_up", module="1 / 0").parent))
    entry_points(monkeypatch, "made_up")
    with pytest.raises(DetectorError, match="importing detector made_up: ZeroDivisionError"):
        installed("made_up")


def test_a_module_that_starts_spark_at_import_is_refused_and_its_session_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = []
    started = SimpleNamespace(stop=lambda: ended.append(True))
    sessions = iter([None, started])
    monkeypatch.setattr(loader, "_session", lambda: next(sessions))
    with pytest.raises(
        DetectorError, match=r"importing detector made_up: it starts Spark.*\n  -> .*events\.sparkSession"
    ):
        from_folder(write_detector(tmp_path, "made_up"))
    assert ended == [True]
    assert "made_up.made_up" not in sys.modules
