"""The pages about what is declared and set: `[tool.lozenge]` and the environment variables."""

import types
from collections.abc import Iterable, Iterator
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from lozenge.detector.manifest import Manifest
from lozenge.detector.resources import Resources
from lozenge.detector.tables.declared_table import Table
from lozenge.job.settings import JobSettings
from lozenge.kafka.schema_registry import SchemaRegistrySettings
from lozenge.kafka.settings import KafkaSettings
from lozenge.process.env_settings import FromEnvironment
from lozenge.sink.settings import SinkSettings
from lozenge_deploy.observe.exporter import ExporterSettings
from lozenge_deploy.operations.notifier_client import NotifierClientSettings
from lozenge_downstream.settings import NotifierSettings
from lozenge_upstream.files.settings import FilesSettings
from lozenge_upstream.settings import UpstreamSettings
from tests.documents.declared_fields import declared_fields
from tests.documents.page import Page, table

TABLES: dict[str, type[BaseModel]] = {
    "[tool.lozenge]": Manifest,
    "[tool.lozenge.resources]": Resources,
    "[tool.lozenge.tables.NAME]": Table,
}
SETTINGS: dict[str, type[FromEnvironment]] = {
    "Kafka: every process": KafkaSettings,
    "Schema registry": SchemaRegistrySettings,
    "Upstream": UpstreamSettings,
    "Notifier": NotifierSettings,
    "The `lozenge` command": NotifierClientSettings,
    "A detector's job": JobSettings,
    "A sink": SinkSettings,
    "A file source": FilesSettings,
    "The exporter": ExporterSettings,
}


def manifest() -> str:
    """A section per table of the manifest."""
    return "\n".join(line for name, model in TABLES.items() for line in _section(f"`{name}`", model, "key", str))


def environment() -> str:
    """A section per class of settings."""
    return "\n".join(
        line
        for name, model in SETTINGS.items()
        for line in _section(name, model, "variable", lambda field, model=model: model.variable_names()[field])
    )


def _section(title: str, model: type[BaseModel], column: str, named: Any) -> Iterator[str]:
    texts = {field.name: field.text for field in declared_fields(model)}
    rows = [
        (f"`{named(name)}`", _type(field.annotation, field.metadata), _default(field), texts[name])
        for name, field in model.model_fields.items()
    ]
    yield from (f"## {title}", "", (model.__doc__ or "").strip(), "")
    yield table((column, "value", "default", "meaning"), rows)


def _type(kind: Any, metadata: Iterable[Any]) -> str:
    limits = [
        f"{words} {getattr(each, name)}"
        for each in metadata
        for name, words in (("ge", "at least"), ("gt", "above"), ("le", "at most"))
        if getattr(each, name, None) is not None
    ]
    return ", ".join([_kind(kind), *limits])


def _kind(kind: Any) -> str:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        limits = [each for given in arguments[1:] for each in getattr(given, "metadata", [given])]
        return _type(arguments[0], limits)
    if origin in (Union, types.UnionType):
        return " or ".join(_kind(each) for each in arguments if each is not types.NoneType)
    if origin is Literal:
        return ", ".join(f"`{each}`" for each in arguments)
    if origin is tuple:
        return f"JSON list of {_kind(arguments[0])}"
    if origin is dict:
        return "tables"
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return ", ".join(f"`{each.value}`" for each in kind)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return "table"
    words = {
        str: "text",
        int: "whole number",
        float: "number",
        bool: "`true` or `false`",
        Path: "path",
        timedelta: "duration, such as `10m`",
        SecretStr: "text (secret)",
    }
    return words[kind]


def _default(field: FieldInfo) -> str:
    if field.default_factory is not None or field.default is None:
        return "-"
    if field.default is PydanticUndefined:
        return "required"
    value = field.default
    if isinstance(value, SecretStr):
        return "(secret)" if value.get_secret_value() else "empty"
    if isinstance(value, timedelta):
        return f"`{value.total_seconds():g}s`"
    if isinstance(value, BaseModel):
        return "see below"
    if isinstance(value, tuple):
        return "`[" + ", ".join(f'"{each}"' for each in value) + "]`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value}`" if value not in ("", {}) else "empty"


PAGES = (Page("docs/reference/manifest.md", manifest), Page("docs/reference/environment.md", environment))
