"""Streams that have nothing in common with this project's own: machine sensors, doors, and what few fields can do."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lozenge.streams.definition import StreamDefinition
from lozenge.streams.project import Streams

Fields = list[dict[str, Any]]
_DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}

SHAPES: Mapping[str, tuple[Mapping[str, str], Fields]] = {
    "sensors": (
        {"sensor": "sensor_id", "plant": "plant"},
        [
            {"name": "sensor_id", "type": "string", "example": "pump-7"},
            {"name": "plant", "type": ["null", "string"], "default": None},
            {"name": "status", "type": "string", "values": ["running", "idle", "stopped"], "example": "running"},
            {"name": "temperature", "type": "double", "example": 21.7},
            {"name": "humidity", "type": ["null", "float"], "default": None},
            {"name": "readings", "type": {"type": "array", "items": "double"}},
            {"name": "tags", "type": {"type": "map", "values": "string"}},
            {
                "name": "position",
                "type": {"type": "record", "name": "Position", "fields": [{"name": "floor", "type": "int"}]},
            },
        ],
    ),
    "doors": (
        {"door": "door_id"},
        [
            {"name": "door_id", "type": "string"},
            {"name": "badge", "type": "string", "pattern": "[A-Z]{3}", "example": "ABC"},
        ],
    ),
    "beats": ({"machine": "machine_id"}, [{"name": "machine_id", "type": "string"}]),
    "meters": (
        {"meter": "meter_id"},
        [
            {"name": "meter_id", "type": "string"},
            {"name": "ticks", "type": "long", "example": -3},
            {"name": "level", "type": ["null", _DECIMAL], "default": None, "example": "99.99"},
        ],
    ),
}
"""By name the keys of a stream and its fields: many types, texts alone, the key alone, numbers alone."""


def written(folder: Path) -> Streams:
    """Writes these streams in `folder`, a folder of streams, and reads it."""
    for name, (keys, fields) in SHAPES.items():
        home = folder / name
        home.mkdir(parents=True)
        declared = ", ".join(f'{key} = "{column}"' for key, column in keys.items())
        (home / "stream.toml").write_text(f'title = "{name}"\nowner = "plant"\nkeys = {{ {declared} }}\n', "utf-8")
        avro = {"type": "record", "name": name.capitalize(), "namespace": "plant", "fields": fields}
        (home / "event.avsc").write_text(json.dumps(avro), "utf-8")
    return Streams.of(folder)


def key_of(stream: StreamDefinition) -> str:
    """Its last key, which its topic need not have."""
    return [*stream.keys][-1]
