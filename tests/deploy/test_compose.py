"""docker-compose.yml and the images, as far as they can be held to the code without Docker."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from lozenge.environment import FromEnvironment
from lozenge.job.settings import JobSettings
from lozenge.kafka import KafkaSettings
from lozenge_deploy.catalogue import copies, detectors_in
from lozenge_deploy.exporter import PORT
from lozenge_downstream.config import Settings as DownstreamSettings
from lozenge_upstream.settings import UpstreamSettings

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DETECTORS = sorted(file.parent.name for file in ROOT.glob("detectors/[a-z]*/pyproject.toml"))
SETTINGS: tuple[type[FromEnvironment], ...] = (KafkaSettings, JobSettings, DownstreamSettings, UpstreamSettings)
VARIABLES = {
    f"{settings.model_config['env_prefix']}{name}".upper() for settings in SETTINGS for name in settings.model_fields
} | {"LOZENGE_CACHE", "LOZENGE_EXPORTER_BIND"}
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


def test_there_is_a_service_for_every_stage_and_detector() -> None:
    platform = {"broker", "registry", "topics", "upstream", "downstream", "exporter", "prometheus"}
    assert SERVICES.keys() == platform | set(DETECTORS), "docker-compose.yml: one service per detector folder"


@pytest.mark.parametrize("name", DETECTORS)
def test_a_detector_service_builds_and_names_its_release(name: str) -> None:
    service, version = SERVICES[name], version_of(ROOT / "detectors" / name)
    assert service["build"]["args"] == {"DETECTOR": name}
    assert service["image"] == f"lozenge/{name}:{version}"
    assert service["environment"]["LOZENGE_JOB_RELEASE"] == version


def test_upstream_writes_the_copies_that_the_detectors_read() -> None:
    shipped = [detector for detector in detectors_in(ROOT / "detectors") if detector.name in SERVICES]
    assert json.loads(SERVICES["upstream"]["environment"]["LOZENGE_UPSTREAM_REKEYS"]) == list(copies(shipped))


@pytest.mark.parametrize("service", SERVICES)
def test_its_variables_are_settings_of_ours(service: str) -> None:
    ours = {name for name in SERVICES[service].get("environment", {}) if name.startswith("LOZENGE_")}
    assert ours <= VARIABLES, f"{service}: no settings class knows {ours - VARIABLES}"


@pytest.mark.parametrize("service", SERVICES)
def test_ports_are_bound_to_loopback(service: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[service].get("ports", ()))


@pytest.mark.parametrize("service", SERVICES)
def test_what_it_waits_for_can_happen(service: str) -> None:
    for other, wait in SERVICES[service].get("depends_on", {}).items():
        match wait["condition"]:
            case "service_healthy":
                assert "healthcheck" in SERVICES[other], f"{service} waits for the health of {other}, which tells none"
            case "service_completed_successfully":
                assert "restart" not in SERVICES[other], f"{service} waits for the end of {other}, which never ends"
            case condition:
                assert condition == "service_started"


@pytest.mark.parametrize("service", SERVICES)
def test_it_runs_again_after_a_crash(service: str) -> None:
    assert SERVICES[service].get("restart") == ("unless-stopped" if service != "topics" else None)


def test_files_and_volumes_that_are_mounted_exist() -> None:
    for service in SERVICES.values():
        for mount in service.get("volumes", ()):
            source = mount.split(":")[0]
            assert source in COMPOSE["volumes"] or (source.startswith("./") and (ROOT / source).exists()), mount


@pytest.mark.parametrize("service", [name for name, service in SERVICES.items() if "build" in service])
def test_its_image_is_built_from_the_top_folder(service: str) -> None:
    build = SERVICES[service]["build"]
    assert build["context"] == "."
    assert (ROOT / build["dockerfile"]).is_file()
    base = f"lozenge/base:{version_of(ROOT)}"
    if service == "topics":
        assert SERVICES[service]["image"] == base
    else:
        assert build["additional_contexts"] == {base: "service:topics"}


@pytest.mark.parametrize("dockerfile", sorted(IMAGES.glob("*/Dockerfile")), ids=lambda file: file.parent.name)
def test_an_image(dockerfile: Path) -> None:
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
