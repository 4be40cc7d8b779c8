"""Sinks of a project that a test makes, and their releases."""

from pathlib import Path
from typing import Any

from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.kafka.writers import AcknowledgedWriter
from lozenge.protocol.app_requests import APPS, AppRelease, AppRequest, AppRow
from lozenge.sink_declarations.project import DECLARATION, SINKS, Sink, read_sink


def sink_folder(project: Path, name: str, declaration: str) -> Path:
    """The folder of a new sink of the project, with this declaration."""
    folder = project / SINKS / name
    folder.mkdir(parents=True)
    (folder / DECLARATION).write_text(declaration)
    return folder


def released(kafka: KafkaSettings, app: str, declaration: dict[str, Any], number: int = 1, **wanted: Any) -> None:
    """Release and request as commands write them, of whatever is declared."""
    ensure_topics(kafka, kafka.topics.control.contracts())
    rows: list[AppRow] = [AppRelease(app, number, declaration), AppRequest(app, number, **wanted)]
    AcknowledgedWriter(kafka).write([APPS.record(kafka.topics.control.apps, row) for row in rows])


def deployed(kafka: KafkaSettings, folder: Path) -> list[str]:
    """The module and arguments of the process of the sink in the folder, which is deployed as its first release."""
    sink: Sink = read_sink(folder)
    released(kafka, sink.app, sink.model_dump(mode="json"))
    return ["lozenge.sink", sink.name]
