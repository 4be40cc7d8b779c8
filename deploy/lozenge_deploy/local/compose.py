"""`python -m lozenge_deploy.local.compose [FOLDER [FILE]]`: the detectors of FOLDER ("detectors") for Docker Compose.

Writes FILE ("docker-compose.override.yml"), which Docker Compose reads after docker-compose.yml. It adds a service for
every detector folder and every stream, with the keys by which that must also be written. The service `upstream` is as
docker-compose.yml has it but for these. Each sink, file source and table next to FOLDER has a service too, in the
profile `sinks`, `sources` or `tables`: it runs what `lozenge sink deploy NAME` and its like have deployed. The file is
JSON, which is YAML too.
"""

import argparse
import json
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lozenge.apps import UPSTREAM, file_source_app, is_sink, sink_app, table_app
from lozenge.archive.settings import ARCHIVE_VARIABLE
from lozenge.errors import LozengeError
from lozenge.file_sources import folder as file_sources
from lozenge.file_sources.definition import DECLARATION as SOURCE
from lozenge.kafka.settings import PARTITIONS_VARIABLE, PREFIX_VARIABLE
from lozenge.platform_tables import project as tables
from lozenge.process.env_settings import named_variables
from lozenge.sink_declarations import project as sinks
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.project import Streams
from lozenge_deploy.local.declared_programs import program_of
from lozenge_deploy.local.upstream_replicas import normaliser_variables
from lozenge_deploy.releases.build import CHECKOUT
from lozenge_deploy.releases.detector_catalog import DetectorFolder, detectors_in, merges_of, rekeys_of

OFF_HEAP_MB = 512
"""What a job's process needs in addition to the memory that its declaration names."""
DECLARED_MB = 1_400
"""For a sink, a file source or the loader of a table."""
ARCHIVE = "archive"
"""The volume with the tables of all sinks."""
WORK = "/var/lib/lozenge"
"""The folder of an image that its user may write to; a volume there is the user's too."""


def override(
    streams: Sequence[StreamDefinition], detectors: Sequence[DetectorFolder], project: Path | None = None
) -> dict[str, Any]:
    """The Compose file of these streams and detectors, and of the sinks, file sources and tables of a project."""
    normalisers = {stream.app: _normaliser(stream, detectors) for stream in streams}
    declared = _declared(project) if project is not None else {}
    return {
        "x-made-by": "make compose",
        "services": normalisers | {d.name: _service(d) for d in detectors} | declared,
        "volumes": {name: {} for name in (*(d.name for d in detectors), *([ARCHIVE] if declared else []))},
    }


def _normaliser(stream: StreamDefinition, detectors: Sequence[DetectorFolder]) -> dict[str, Any]:
    variables = normaliser_variables(stream, rekeys_of(stream, detectors), merges_of(stream, detectors))
    like = {} if stream.app == UPSTREAM else {"extends": {"file": "docker-compose.yml", "service": UPSTREAM}}
    return like | {"environment": variables}


def _service(detector: DetectorFolder) -> dict[str, Any]:
    return {
        "image": f"lozenge/{detector.name}:{detector.version}",
        "build": {
            "context": ".",
            "dockerfile": "deploy/images/detector/Dockerfile",
            "args": {"DETECTOR": detector.name},
            "additional_contexts": {f"lozenge/base:{_version()}": "service:topics"},
        },
        "environment": _kafka()
        | {
            "LOZENGE_JOB_RELEASE": detector.version,
            "LOZENGE_JOB_GENERATION": f"${{{detector.name.upper()}_GENERATION:-1}}",
        },
        "volumes": [f"{detector.name}:{WORK}"],
    } | _job(detector.declaration.resources.memory_mb + OFF_HEAP_MB)


def _declared(project: Path) -> dict[str, dict[str, Any]]:
    """A service for each sink, table and file source, which starts only with its profile."""
    sources = project / file_sources.USUAL
    kinds = (
        ("sinks", sink_app, sinks.names_in(project), project / sinks.SINKS, sinks.DECLARATION),
        ("tables", table_app, tables.names_in(project), project / tables.TABLES, tables.DECLARATION),
        ("sources", file_source_app, file_sources.names_in(sources), sources, SOURCE),
    )
    return {
        app_of(name): _deployed(profile, app_of(name), folder / name / declaration)
        for profile, app_of, names, folder, declaration in kinds
        for name in names
    }


def _deployed(profile: str, app: str, declaration: Path) -> dict[str, Any]:
    """What runs an app that is deployed. Docker Compose passes the variables that its declaration names."""
    program = program_of(app)
    named: dict[str, str | None] = dict.fromkeys(named_variables(declaration.read_text("utf-8", errors="replace")))
    archive = {ARCHIVE_VARIABLE: f"{WORK}/archive"} if is_sink(app) else {}
    return {
        "profiles": [profile],
        "image": f"lozenge/base:{_version()}",
        "command": ["python", "-m", *program.module],
        "environment": _kafka() | named | {**program.variables, **archive},
        **({"volumes": [f"{ARCHIVE}:{WORK}"]} if is_sink(app) else {}),
    } | _job(DECLARED_MB)


def _job(memory_mb: int) -> dict[str, Any]:
    """What the services of all jobs have in common."""
    return {
        "mem_limit": f"{memory_mb}m",
        "restart": "unless-stopped",
        "init": True,
        "stop_grace_period": "40s",
        "depends_on": {"topics": {"condition": "service_completed_successfully"}},
    }


def _kafka() -> dict[str, str | None]:
    return {
        "LOZENGE_KAFKA_BOOTSTRAP": "broker:9092",
        PREFIX_VARIABLE: f"${{{PREFIX_VARIABLE}:-}}",
        PARTITIONS_VARIABLE: f"${{{PARTITIONS_VARIABLE}:-4}}",
        "SCHEMA_REGISTRY_URL": "http://registry:8080/apis/ccompat/v7",
    }


def _version() -> str:
    """Of the platform, and of its images."""
    return str(tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]["version"])


def main() -> int:
    """Writes the file; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lozenge_deploy.local.compose", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("detectors"))
    parser.add_argument("file", nargs="?", type=Path, default=Path("docker-compose.override.yml"))
    arguments = parser.parse_args()
    try:
        streams, found = Streams.load(arguments.folder), detectors_in(arguments.folder)
    except LozengeError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    made = override(streams.definitions, found, arguments.folder.absolute().parent)
    arguments.file.write_text(json.dumps(made, indent=2) + "\n", "utf-8")
    print(f"{arguments.file}: {', '.join(d.name for d in found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
