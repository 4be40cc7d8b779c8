"""The settings of a session: the JVM's flags add up, everything else can be overridden."""

from pathlib import Path

import pytest

from lozenge.spark.conf import JOB_NEW_MB, Conf, session_conf
from lozenge.toolchain.cds import ClassDataArchive


@pytest.fixture(autouse=True)
def _no_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ClassDataArchive, "file", lambda self: None)


def conf(*, new_mb: int | None = None, master: str | None = None, **overrides: str) -> Conf:
    dotted = {name.replace("_", "."): value for name, value in overrides.items()}
    jars = [Path("/jars/a.jar"), Path("/jars/b.jar")]
    return session_conf(cores=3, memory_mb=600, new_mb=new_mb, master=master, jars=jars, overrides=dotted)


def flags(settings: Conf) -> list[str]:
    return str(settings["spark.driver.extraJavaOptions"]).split()


def test_a_job_has_a_new_generation_of_fixed_size_and_gives_memory_back() -> None:
    found = flags(conf(new_mb=JOB_NEW_MB))
    assert {"-Xmn32m", "-XX:MinHeapFreeRatio=10", "-XX:MaxHeapFreeRatio=20"} <= set(found)
    assert not [flag for flag in flags(conf()) if flag.startswith(("-Xmn", "-XX:MinHeapFree", "-XX:MaxHeapFree"))]


def test_every_jvm_leaves_the_class_data_archive_where_it_was_made_for() -> None:
    found = flags(conf())
    assert found.index("-XX:+UnlockDiagnosticVMOptions") < found.index("-XX:ArchiveRelocationMode=0")


def test_further_flags_come_last_and_other_settings_are_replaced() -> None:
    found = conf(spark_driver_extraJavaOptions="-Dmine=1", spark_ui_enabled="true")
    assert flags(found)[-1] == "-Dmine=1"
    assert "-XX:+UseSerialGC" in flags(found)
    assert found["spark.ui.enabled"] == "true"


def test_without_a_cluster_everything_binds_to_loopback() -> None:
    found = conf()
    assert found["spark.driver.bindAddress"] == found["spark.driver.host"] == "127.0.0.1"
    assert found["spark.driver.extraClassPath"] == "/jars/a.jar:/jars/b.jar"
    assert "spark.jars" not in found


def test_a_cluster_gets_the_jars_and_bounds() -> None:
    found = conf(master="spark://host:7077")
    assert found["spark.jars"] == "/jars/a.jar,/jars/b.jar"
    assert found["spark.cores.max"] == "3"
    assert found["spark.executor.memory"] == found["spark.driver.memory"] == "600m"
    assert "spark.driver.host" not in found


def test_no_length_in_a_record_makes_a_jvm_claim_more_memory_than_any_record_has() -> None:
    limits = ("string.maxLength", "bytes.maxLength", "collectionItems.maxLength")
    wanted = {f"-Dorg.apache.avro.limits.{what}=16777216" for what in limits}
    assert wanted <= set(flags(conf()))
    assert wanted <= set(executor_flags())


def test_avro_keeps_no_reader_of_a_task_that_has_ended() -> None:
    wanted = "-Dorg.apache.avro.fastread=false"
    assert wanted in flags(conf())
    assert wanted in executor_flags()


def executor_flags() -> list[str]:
    return str(conf(master="spark://host:7077")["spark.executor.extraJavaOptions"]).split()
