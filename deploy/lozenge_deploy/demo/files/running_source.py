"""The file source of one run of the demo: its folder, its release, its process, and its comparison at the end."""

import json
from collections.abc import Collection, Iterable
from pathlib import Path

from lozenge.contracts.topics import Topic
from lozenge.file_sources.definition import DECLARATION, FileSource
from lozenge.file_sources.folder import USUAL, read
from lozenge.file_sources.topics import topics_of
from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.file_positions import FilePosition, FileState
from lozenge_deploy.demo.feed.formats import RAW_JSON
from lozenge_deploy.demo.feed.payment_files import COLUMNS, KEY
from lozenge_deploy.demo.files.file_check import count_rows, file_comparisons, files_in
from lozenge_deploy.demo.processes import Programs
from lozenge_deploy.demo.reconciliation import Comparison
from lozenge_deploy.demo.sinks.extras import Extra
from lozenge_deploy.operations.file_sources import requests
from lozenge_deploy.operations.file_sources.changes import deployment_of
from lozenge_deploy.supervision.supervisor import Supervisor

NAME = "payments"
_REASON = "the demo delivers files"
_DECLARED = """title = "Payments that an acquirer delivers in files"
owner = "demo"
path = {path}
format = "parquet"
topic = "{topic}"
key = "{key}"
# the feed gives a file its name once it is complete
complete = "rename"
poll = "500ms"

[columns]
{columns}
"""


class RunningSources:
    """The file sources of a demo: one, or none."""

    def __init__(self, sources: Iterable[FileSource]) -> None:
        self._sources = list(sources)

    @property
    def apps(self) -> list[str]:
        """The names of their processes."""
        return [source.app for source in self._sources]

    @property
    def folder(self) -> Path | None:
        """Where payments are to be written; None if no file is read."""
        return next((Path(source.path) for source in self._sources), None)

    def topics(self, kafka: KafkaSettings) -> list[Topic]:
        """Those that they write, without the raw topic."""
        return [topic for source in self._sources for topic in topics_of(kafka.topics, source.name)]

    def start(self, kafka: KafkaSettings, programs: Programs, supervisor: Supervisor) -> None:
        """Deploys and starts them; raises BrokerUnavailable."""
        for source in self._sources:
            _deploy(kafka, source)
            supervisor.start(programs.file_source(source.app, source.name))

    def left(self, kafka: KafkaSettings) -> dict[str, int]:
        """The sources that have files to copy, with the number of these; raises BrokerUnavailable."""
        found = {
            source.app: left(
                (file.name for file in files_in(Path(source.path))), requests.positions_of(kafka, source.name)
            )
            for source in self._sources
        }
        return {app: number for app, number in found.items() if number}

    def comparisons(self, kafka: KafkaSettings) -> list[Comparison]:
        """Rows compared with records and events; raises BrokerUnavailable."""
        return [each for source in self._sources for each in file_comparisons(source, count_rows(kafka, source))]


def sources_of(chosen: Collection[Extra], work: Path) -> RunningSources:
    """The file source of a demo, if it is among what was chosen; its declaration and its files are in `work`."""
    return RunningSources([declared(work)] if Extra.FILES in chosen else [])


def declared(work: Path) -> FileSource:
    """Writes the folder of the source as `lozenge source` reads it in `work`, and an empty one for its files."""
    files, folder = work / "files", work / USUAL / NAME
    files.mkdir(parents=True)
    folder.mkdir(parents=True)
    columns = "\n".join(f'{name} = "{kind}"' for name, kind in COLUMNS.items())
    given = {"path": json.dumps(str(files), ensure_ascii=False), "topic": RAW_JSON, "key": KEY, "columns": columns}
    (folder / DECLARATION).write_text(_DECLARED.format(**given), "utf-8")
    return read(folder)


def left(files: Iterable[str], positions: Iterable[FilePosition]) -> int:
    """How many of the `files` were neither copied as a whole nor have failed."""
    return len(set(files) - {position.path for position in positions if position.state is not FileState.COPYING})


def _deploy(kafka: KafkaSettings, source: FileSource) -> None:
    """As `lozenge source deploy` does."""
    requests.prepare_topics(kafka, source)
    requests.requests_of_sources(kafka).make(
        source.name,
        lambda state: deployment_of(state, source, _REASON),
        action="source deploy",
        detail={"reason": _REASON},
    )
