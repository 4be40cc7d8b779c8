"""docker-compose.yml and the images, as far as they can be checked without Docker."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from lozenge.job.settings import JobSettings
from lozenge.kafka.schema_registry import SchemaRegistrySettings
from lozenge.kafka.settings import PARTITIONS_VARIABLE, PREFIX_VARIABLE, KafkaSettings
from lozenge.process.env_settings import FromEnvironment
from lozenge.streams.project import STREAMS_VARIABLE
from lozenge_deploy.local.compose import override
from lozenge_deploy.local.upstream_replicas import normaliser_variables
from lozenge_deploy.observe.exporter import PORT, ExporterSettings
from lozenge_deploy.releases.detector_catalog import detectors_in
from lozenge_downstream.routing.config import Routing, routing
from lozenge_downstream.settings import NotifierSettings
from lozenge_upstream.settings import UpstreamSettings
from tests.streams import AUTH, STREAMS

ROOT = Path(__file__).parents[3]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
FOLDERS = detectors_in(ROOT / "detectors")
DETECTORS = [folder.name for folder in FOLDERS]
SETTINGS: tuple[type[FromEnvironment], ...] = (
    KafkaSettings,
    SchemaRegistrySettings,
    JobSettings,
    NotifierSettings,
    UpstreamSettings,
    ExporterSettings,
)
VARIABLES = {
    f"{settings.model_config['env_prefix']}{name}".upper() for settings in SETTINGS for name in settings.model_fields
} | {"LOZENGE_CACHE", PARTITIONS_VARIABLE, PREFIX_VARIABLE, STREAMS_VARIABLE}
IMAGES = ROOT / "deploy" / "images"


def version_of(folder: Path) -> str:
    return str(tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]["version"])


def variables_in(text: str) -> set[str]:
    return set(re.findall(r"\bLOZENGE_[A-Z_]+", text)) - {
        "LOZENGE_UPSTREAM_",
        "LOZENGE_DOWNSTREAM_",
        "LOZENGE_KAFKA_",
        "LOZENGE_JOB_",
    }


def test_there_is_a_service_for_every_stage_and_no_detector_without_a_folder() -> None:
    platform = {"broker", "registry", "topics", "upstream", "downstream", "exporter", "prometheus"}
    image = "deploy/images/detector/Dockerfile"
    detectors = {name for name, service in SERVICES.items() if service.get("build", {}).get("dockerfile") == image}
    assert SERVICES.keys() - detectors == platform
    assert detectors
    assert detectors <= set(DETECTORS), "docker-compose.yml has a service of a detector that has no folder"


@pytest.mark.parametrize("name", DETECTORS)
def test_a_detectors_service_is_made_of_its_folder(name: str) -> None:
    made = override(STREAMS.definitions, FOLDERS)["services"][name]
    assert made["image"] == f"lozenge/{name}:{version_of(ROOT / 'detectors' / name)}"
    assert SERVICES.get(name, made) == made, f"make the service {name} in docker-compose.yml as `make compose` would"


def test_upstream_writes_the_copies_that_the_detectors_read() -> None:
    found = [folder for folder in FOLDERS if folder.name in SERVICES]
    made = override([AUTH], found)["services"]["upstream"]
    assert made["environment"].items() <= SERVICES["upstream"]["environment"].items()


def test_a_new_folder_gets_a_service(tmp_path: Path) -> None:
    folder = shutil.copytree(ROOT / "detectors" / "large_amount", tmp_path / "detectors" / "newcomer")
    declared = (folder / "pyproject.toml").read_text("utf-8").replace("large_amount", "newcomer")
    (folder / "pyproject.toml").write_text(declared.replace("[tool.lozenge]", '[tool.lozenge]\nkey = "account"'))
    command = [sys.executable, "-m", "lozenge_deploy.local.compose", str(folder.parent), str(tmp_path / "override.yml")]
    subprocess.run(command, check=True, timeout=60)
    made = yaml.safe_load((tmp_path / "override.yml").read_text("utf-8"))
    assert made["services"].keys() == {"newcomer", *(stream.app for stream in STREAMS.definitions)}
    assert made["services"]["newcomer"]["build"]["args"] == {"DETECTOR": "newcomer"}
    assert made["services"]["upstream"]["environment"] == {
        "LOZENGE_UPSTREAM_STREAM": "auth",
        "LOZENGE_UPSTREAM_REKEYS": '["account", "terminal"]',
        "LOZENGE_UPSTREAM_MERGES": "[]",
    }
    assert made["volumes"].keys() == {"newcomer"}


def test_a_further_stream_has_a_service_like_upstream() -> None:
    login = AUTH.model_copy(update={"name": "login", "app": "upstream-login", "copies": ()})
    made = override([AUTH, login], FOLDERS)["services"]["upstream-login"]
    assert made["extends"] == {"file": "docker-compose.yml", "service": "upstream"}
    assert made["environment"] == normaliser_variables(login, (), ())


def test_sinks_tables_and_file_sources_have_services_that_start_with_a_profile(tmp_path: Path) -> None:
    declarations = {
        "downstream/sinks/recent/sink.toml": 'url = "redis://:${SECRET}@cache:6379"',
        "downstream/sinks/kept/sink.toml": 'kind = "archive"',
        "upstream/tables/limits/table.toml": 'source = "postgresql://${LIMITS_USER}@db/limits"',
        "upstream/sources/nightly/source.toml": 'path = "s3://bucket/nightly"',
    }
    for path, text in declarations.items():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text)
    made = override(STREAMS.definitions, FOLDERS, tmp_path)
    found = {name: service for name, service in made["services"].items() if "profiles" in service}
    assert {name: (*each["profiles"], *each["command"][2:]) for name, each in found.items()} == {
        "sink-recent": ("sinks", "lozenge.sink", "recent"),
        "sink-kept": ("sinks", "lozenge.sink", "kept"),
        "table-limits": ("tables", "lozenge_upstream.tables", "limits"),
        "files-nightly": ("sources", "lozenge_upstream.files"),
    }
    passed = {name for each in found.values() for name, value in each["environment"].items() if value is None}
    assert passed == {"SECRET", "LIMITS_USER"}, "a secret is in no file"
    assert found["files-nightly"]["environment"]["LOZENGE_FILES_SOURCE"] == "nightly"
    assert found["sink-kept"]["environment"]["LOZENGE_ARCHIVE"].startswith("/var/lib/lozenge/")
    assert found["sink-kept"]["volumes"] == ["archive:/var/lib/lozenge"]
    assert "archive" in made["volumes"]


def test_the_broker_is_the_embedded_ones_version() -> None:
    jars = (ROOT / "shared" / "lozenge" / "toolchain" / "jars.sha256").read_text("utf-8")
    [version] = re.findall(r" broker/kafka_2\.13-(.+)\.jar", jars)
    assert SERVICES["broker"]["image"] == f"apache/kafka:{version}"


def test_the_notifier_has_a_routing_file_with_an_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = SERVICES["downstream"]
    mounted = service["environment"]["LOZENGE_DOWNSTREAM_ROUTING"]
    [source] = [mount.split(":")[0] for mount in service["volumes"] if mount.split(":")[1] == mounted]
    assert routing(ROOT / source) == Routing()
    monkeypatch.setenv("OPS_WEBHOOK_SECRET", f"whsec_{'A' * 32}")
    example = tmp_path / "routing.toml"
    example.write_text(re.sub(r"^#(?=\S)", "", (ROOT / source).read_text("utf-8"), flags=re.MULTILINE))
    parsed = routing(example)
    assert [placed.route.channels for placed in parsed.route.walk()] == [(), ("ops",)]
    assert parsed.channels["ops"].model_dump()["secret"][0]["env"] in service["environment"]


@pytest.mark.parametrize("service", SERVICES)
def test_the_variables_of_a_service_are_settings(service: str) -> None:
    ours = {name for name in SERVICES[service].get("environment", {}) if name.startswith("LOZENGE_")}
    assert ours <= VARIABLES, f"{service}: no settings class knows {ours - VARIABLES}"


@pytest.mark.parametrize("service", SERVICES)
def test_ports_are_bound_to_loopback(service: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[service].get("ports", ()))


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_waits_for_conditions_that_can_be_met(service: str) -> None:
    for other, wait in SERVICES[service].get("depends_on", {}).items():
        match wait["condition"]:
            case "service_healthy":
                assert "healthcheck" in SERVICES[other], (
                    f"{service} waits for the health of {other}, which has no health check"
                )
            case "service_completed_successfully":
                assert "restart" not in SERVICES[other], f"{service} waits for the end of {other}, which never ends"
            case condition:
                assert condition == "service_started"


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_is_restarted_after_a_crash(service: str) -> None:
    assert SERVICES[service].get("restart") == ("unless-stopped" if service != "topics" else None)


def test_files_and_volumes_that_are_mounted_exist() -> None:
    for service in SERVICES.values():
        for mount in service.get("volumes", ()):
            source = mount.split(":")[0]
            assert source in COMPOSE["volumes"] or (source.startswith("./") and (ROOT / source).exists()), mount


@pytest.mark.parametrize("service", [name for name, service in SERVICES.items() if "build" in service])
def test_the_image_of_a_service_is_built_from_the_top_folder(service: str) -> None:
    build = SERVICES[service]["build"]
    assert build["context"] == "."
    assert (ROOT / build["dockerfile"]).is_file()
    base = f"lozenge/base:{version_of(ROOT)}"
    if service == "topics":
        assert SERVICES[service]["image"] == base
    else:
        assert build["additional_contexts"] == {base: "service:topics"}


@pytest.mark.parametrize("dockerfile", sorted(IMAGES.glob("*/Dockerfile")), ids=lambda file: file.parent.name)
def test_an_image_pins_its_base_runs_without_root_and_copies_existing_files(dockerfile: Path) -> None:
    text = dockerfile.read_text("utf-8")
    bases = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert all(re.search(r":[\w.-]*\d", base) for base in bases), f"{bases}: name the version of a base image"
    assert bases[-1] == f"lozenge/base:{version_of(ROOT)}" or dockerfile.parent.name == "base"
    users = re.findall(r"^USER (\S+)", text, re.MULTILINE)
    assert users[-1:] != ["root"], "an image must not run as root"
    assert variables_in(text) <= VARIABLES
    for source in re.findall(r"^COPY (?!--from)(\S+)", text, re.MULTILINE):
        assert (ROOT / source.replace("${DETECTOR}", DETECTORS[0])).exists(), f"{dockerfile}: {source} does not exist"


def test_the_base_image_is_not_root() -> None:
    assert re.findall(r"^USER (\S+)", (IMAGES / "base" / "Dockerfile").read_text("utf-8"), re.MULTILINE) == ["10001"]


def test_prometheus_asks_services_that_exist() -> None:
    config = yaml.safe_load((ROOT / "deploy" / "monitoring" / "prometheus.yml").read_text("utf-8"))
    targets = [t for job in config["scrape_configs"] for group in job["static_configs"] for t in group["targets"]]
    assert {target.split(":")[0] for target in targets} <= SERVICES.keys() | {"localhost"}
    assert f"exporter:{PORT}" in targets
