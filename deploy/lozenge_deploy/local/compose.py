"""`python -m lozenge_deploy.local.compose [FOLDER [FILE]]`: the detectors of FOLDER ("detectors") for Docker Compose.

Writes FILE ("docker-compose.override.yml"), which Docker Compose reads after docker-compose.yml. It adds a service for
every detector folder and every stream, with the keys by which that must also be written. The service `upstream` is as
docker-compose.yml has it but for these. The file is JSON, which is YAML too.
"""

import argparse
import json
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lozenge.apps import UPSTREAM
from lozenge.errors import LozengeError
from lozenge.kafka.settings import PARTITIONS_VARIABLE, PREFIX_VARIABLE
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.project import Streams
from lozenge_deploy.local.upstream_replicas import normaliser_variables
from lozenge_deploy.releases.build import CHECKOUT
from lozenge_deploy.releases.detector_catalog import DetectorFolder, detectors_in, merges_of, rekeys_of

OFF_HEAP_MB = 512
"""What a job's process needs in addition to the memory that its declaration names."""


def override(streams: Sequence[StreamDefinition], detectors: Sequence[DetectorFolder]) -> dict[str, Any]:
    """The Compose file of these streams and detectors."""
    normalisers = {stream.app: _normaliser(stream, detectors) for stream in streams}
    return {
        "x-made-by": "make compose",
        "services": normalisers | {d.name: _service(d) for d in detectors},
        "volumes": {d.name: {} for d in detectors},
    }


def _normaliser(stream: StreamDefinition, detectors: Sequence[DetectorFolder]) -> dict[str, Any]:
    variables = normaliser_variables(stream, rekeys_of(stream, detectors), merges_of(stream, detectors))
    like = {} if stream.app == UPSTREAM else {"extends": {"file": "docker-compose.yml", "service": UPSTREAM}}
    return like | {"environment": variables}


def _service(detector: DetectorFolder) -> dict[str, Any]:
    platform = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    return {
        "image": f"lozenge/{detector.name}:{detector.version}",
        "build": {
            "context": ".",
            "dockerfile": "deploy/images/detector/Dockerfile",
            "args": {"DETECTOR": detector.name},
            "additional_contexts": {f"lozenge/base:{platform}": "service:topics"},
        },
        "environment": {
            "LOZENGE_KAFKA_BOOTSTRAP": "broker:9092",
            PREFIX_VARIABLE: f"${{{PREFIX_VARIABLE}:-}}",
            PARTITIONS_VARIABLE: f"${{{PARTITIONS_VARIABLE}:-4}}",
            "SCHEMA_REGISTRY_URL": "http://registry:8080/apis/ccompat/v7",
            "LOZENGE_JOB_RELEASE": detector.version,
            "LOZENGE_JOB_GENERATION": f"${{{detector.name.upper()}_GENERATION:-1}}",
        },
        "volumes": [f"{detector.name}:/var/lib/lozenge"],
        "mem_limit": f"{detector.declaration.resources.memory_mb + OFF_HEAP_MB}m",
        "restart": "unless-stopped",
        "init": True,
        "stop_grace_period": "40s",
        "depends_on": {"topics": {"condition": "service_completed_successfully"}},
    }


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
    arguments.file.write_text(json.dumps(override(streams.definitions, found), indent=2) + "\n", "utf-8")
    print(f"{arguments.file}: {', '.join(d.name for d in found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
