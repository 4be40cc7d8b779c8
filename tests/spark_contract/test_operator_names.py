"""The operators that the checks of a plan name exist in this Spark. Read from its jars, without a JVM."""

import zipfile

import pytest

from lozenge.job.query import plan_checks
from lozenge.toolchain import spark_home


@pytest.fixture(scope="module")
def operators() -> set[str]:
    """The names of all logical and physical operators, as plans show them."""
    names: set[str] = set()
    for jar in (*spark_home().glob("jars/spark-sql_*.jar"), *spark_home().glob("jars/spark-catalyst_*.jar")):
        with zipfile.ZipFile(jar) as archive:
            names |= {entry.rpartition("/")[2].removesuffix(".class") for entry in archive.namelist()}
    return names | {name.removesuffix("Exec") for name in names}


@pytest.mark.parametrize(
    "name", sorted(plan_checks._REALTIME | plan_checks._REALTIME_AGGREGATE | plan_checks._HINTS.keys())
)
def test_an_operator_exists_under_its_name(name: str, operators: set[str]) -> None:
    assert name in operators


@pytest.mark.parametrize("beginning", plan_checks._STATEFUL)
def test_an_operator_begins_so(beginning: str, operators: set[str]) -> None:
    assert any(name.startswith(beginning) for name in operators)
