"""`[tool.lozenge]` in a detector's pyproject.toml: what the platform must know in addition to the code.

The file is in the detector's wheel, in the package `<name>`, with the reference tables next to it. So a running job
reads the very manifest it was released with.
"""

import re
import tomllib
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from lozenge import validation
from lozenge.contracts.detector_kind import DetectorKind
from lozenge.contracts.detector_mode import DetectorMode
from lozenge.contracts.display_text import is_blank
from lozenge.contracts.isolation import Isolation
from lozenge.detector.events import Severity
from lozenge.detector.resources import Resources, Section, refused_sharing
from lozenge.detector.tables.declared_table import Table
from lozenge.durations import TextDuration
from lozenge.errors import ConfigError
from lozenge.process.text_files import bad_byte
from lozenge.toml_places import Place, TomlPlaces

REALTIME_TRIGGER, LEAST_REALTIME_TRIGGER = timedelta(minutes=1), timedelta(seconds=5)
"""How often a job in Real-Time Mode commits unless it declares another time, and the least that Spark takes."""


def _visible(text: str) -> str:
    if is_blank(text):
        raise ValueError("it shows nothing: receivers of notifications refuse a blank text")
    return text


class Manifest(Section):
    """A detector as the platform sees it."""

    kind: DetectorKind
    """`rule` processes one event at a time, `stateful` folds the events of a key, `aggregate` counts in windows."""

    owner: Annotated[str, Field(min_length=1), AfterValidator(_visible)]
    """Who answers for it: a person or a team. Routes can match it."""

    stream: str = ""
    """The kind of event that it reads: the name of a folder in `upstream/streams`. Unset, it is the default
    one, or the only one there is."""

    streams: tuple[str, ...] = ()
    """Instead of `stream`: several, read together in the order of one topic, by a `key` that is the same field in each
    of them. An event has its `stream`, and null in the fields of the others. Upstream must merge all of them by that
    key (`LOZENGE_UPSTREAM_MERGES`)."""

    alerts_of: Annotated[str, Field(pattern="^([a-z][a-z0-9_]*)?$")] = ""
    """Instead of `stream`: a detector whose alerts are its events, each with the id of the alert. `key` is the entity
    of these alerts. No detector reads its own alerts, be it through others."""

    key: str = ""
    """The entity of its alerts, and the key of its input topic: one of the stream's keys, the first unless set. All
    events of one entity are in one partition, in their order. Upstream must write the copy of the events that has this
    key (`LOZENGE_UPSTREAM_REKEYS`)."""

    title: Annotated[str, Field(min_length=1), AfterValidator(_visible)]
    """The title of its alerts, unless an alert has its own."""

    severity: Severity = "medium"
    """The severity of its alerts, unless an alert has its own."""

    guarantee: Literal["exactly-once", "at-least-once", "at-most-once"] = "exactly-once"
    """Whether a crash publishes the alerts of a batch once, again under equal ids, or not at all. A job with
    `at-most-once` also starts at the newest event and without state."""

    mode: DetectorMode = DetectorMode.MICRO_BATCH
    """With `realtime` each event is processed when it comes, within milliseconds, instead of batch by batch. It is for
    rules and aggregates. After a crash the events since the last commit are processed again; their alerts are still
    published once."""

    trigger: TextDuration = timedelta(seconds=1)
    """The time from one batch to the next; in Real-Time Mode from one commit to the next, then `1m` unless declared and
    at least `5s`. Such a commit delays events: by 0.3 s in a rule, by 0.6 to 0.9 s in an aggregate."""

    max_batch: Annotated[int, Field(ge=1)] = 200_000
    """The largest number of events in one batch. A backlog is processed in batches of this size."""

    lateness: TextDuration | None = None
    """Aggregates: how late an event may be, the delay of the watermark. An aggregate requires it."""

    window: TextDuration | None = None
    """Aggregates: the longest time over which it counts. A new release reads that much again, to count open windows
    completely. An aggregate requires it."""

    state: Literal["keep", "rebuild", "fresh"] = "keep"
    """What a new release does with the state of the one before: start with it, compute it from the retained events
    before it goes live, or start without any."""

    missed: Literal["stop", "skip"] = "stop"
    """What a job does that was down for longer than events are retained: stop until a person moves its offsets, or skip
    the events that are gone."""

    backlog: Literal["oldest-first", "newest-first"] = "oldest-first"
    """Rules: with `newest-first` a job with a lag above one `max_batch` starts at the newest event, and backfills the
    rest concurrently."""

    isolation: Isolation | None = None
    """Whether its Spark has a JVM of its own, or shares one with other detectors; unset, it shares one if it can. A
    shared JVM saves some 400 MB and most of the start; if it ends, all of its detectors start again. It is not for
    Real-Time Mode, and for at most 2048 MB and 4 cores."""

    resources: Resources = Resources()
    """What its process may use, as `[tool.lozenge.resources]`."""

    tables: dict[str, Table] = Field(default_factory=dict)
    """Its reference tables by name, each as `[tool.lozenge.tables.NAME]`."""

    @model_validator(mode="before")
    @classmethod
    def _one_of_several_is_one(cls, given: Any) -> Any:
        named = given.get("streams") if isinstance(given, dict) and not given.get("stream") else None
        if isinstance(named, list | tuple) and len(named) == 1:
            return {**given, "streams": (), "stream": named[0]}
        return given

    @model_validator(mode="after")
    def _the_input_is_named_once(self) -> "Manifest":
        if self.streams and self.stream:
            raise ValueError("stream names one stream, and streams several: remove one of them")
        if self.streams and not self.key:
            raise ValueError('streams needs key = "...": an entity that all of them have')
        if len(set(self.streams)) < len(self.streams):
            raise ValueError("streams names a stream twice")
        if self.alerts_of and (self.stream or self.streams):
            raise ValueError("alerts_of names what it reads, and so does stream: remove one of them")
        if self.alerts_of and not self.key:
            raise ValueError('alerts_of needs key = "...": the entity of those alerts')
        return self

    @model_validator(mode="after")
    def _time_belongs_to_aggregates(self) -> "Manifest":
        if any(self.kind.state_in_checkpoint != (time is not None) for time in (self.lateness, self.window)):
            raise ValueError(
                'lateness = "10m" (how late an event may be) and window = "1h" (the longest time it counts over) '
                "are required for an aggregate, and only there"
            )
        return self

    @model_validator(mode="after")
    def _state_belongs_to_memory(self) -> "Manifest":
        if self.state != "keep" and self.stateless:
            raise ValueError(f'a {self.kind} has no state: remove state = "{self.state}"')
        return self

    @model_validator(mode="after")
    def _at_most_once_leaves_nothing_to_decide(self) -> "Manifest":
        if self.guarantee == "at-most-once" and (self.missed, self.backlog) != ("stop", "oldest-first"):
            raise ValueError('guarantee = "at-most-once" starts at the newest event: remove missed and backlog')
        return self

    @model_validator(mode="after")
    def _order_does_not_matter_to_the_stateless(self) -> "Manifest":
        if self.backlog == "newest-first" and not self.stateless:
            raise ValueError(f'a {self.kind} depends on the events before: remove backlog = "newest-first"')
        return self

    @model_validator(mode="before")
    @classmethod
    def _realtime_commits_each_minute(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("mode") == "realtime":
            return {"trigger": REALTIME_TRIGGER} | given
        return given

    @model_validator(mode="after")
    def _realtime_is_for_what_needs_no_batch(self) -> "Manifest":
        if not self.realtime:
            return self
        if self.kind.needs_batches:
            raise ValueError('mode = "realtime" is for rules and aggregates: a fold is processed batch by batch')
        if self.guarantee == "at-most-once":
            raise ValueError('mode = "realtime" publishes before it commits: guarantee = "at-most-once" cannot be kept')
        if refusal := self.refused_trigger(self.trigger):
            raise ValueError(refusal)
        return self

    @model_validator(mode="after")
    def _only_a_small_one_shares(self) -> "Manifest":
        if self.isolation is Isolation.SHARED and (refusal := refused_sharing(self.mode, self.resources)):
            raise ValueError(f'isolation = "shared": {refusal}')
        return self

    def refused_trigger(self, trigger: timedelta) -> str:
        """Why the detector cannot run with such a trigger; "" if it can."""
        if not self.realtime or trigger >= LEAST_REALTIME_TRIGGER:
            return ""
        least, given = (f"{time.total_seconds():g} s" for time in (LEAST_REALTIME_TRIGGER, trigger))
        return f"in Real-Time Mode trigger is the time between two commits, {least} at least, not {given}"

    @property
    def realtime(self) -> bool:
        """Whether each event is processed when it comes."""
        return self.mode is DetectorMode.REALTIME

    @property
    def stateless(self) -> bool:
        """Whether its alerts on an event depend on that event alone."""
        return self.kind.stateless

    @property
    def published_by_spark(self) -> bool:
        """Whether its alerts are written by Spark's own sink, which knows no fence."""
        return self.mode.published_ahead and self.stateless

    @property
    def memory(self) -> timedelta:
        """How far back an aggregate's open windows reach; zero for the other kinds."""
        return (self.lateness or timedelta()) + (self.window or timedelta())


def read(file: Path) -> tuple[str, str, Manifest]:
    """`parse` for a file; raises ConfigError also if it cannot be read."""
    try:
        text = file.read_text("utf-8")
    except OSError as error:
        raise ConfigError(f"reading {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"reading {file}: not UTF-8: {bad_byte(error)}", hint="save it as UTF-8") from error
    return parse(text, str(file))


def parse(text: str, origin: str) -> tuple[str, str, Manifest]:
    """(name, version, declaration) of a pyproject.toml; raises ConfigError with every problem at once."""
    if text.startswith("\ufeff"):
        raise ConfigError(
            f"reading {origin}: it begins with a byte order mark",
            hint="save it as UTF-8 without one: no tool that builds a wheel reads it",
        )
    try:
        project: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"reading {origin}: {error}", hint="fix the TOML syntax") from error
    problems = []
    name, version = (value_at(project, "project", key) for key in ("name", "version"))
    if not isinstance(name, str) or not re.fullmatch("[a-z0-9_]+", name):
        problems.append("project.name: lower-case letters, digits and underscores, such as large_amount")
    if not isinstance(version, str) or not version:
        problems.append("project.version: missing" if version is None else 'project.version: a text, such as "1.0.0"')
    try:
        declaration = Manifest.model_validate(value_at(project, "tool", "lozenge") or {})
    except ValidationError as error:
        for problem in validation.problems(error):
            field = ".".join(["tool.lozenge", *(str(part) for part in problem["loc"])])
            problems.append(f"{field}{_line(text, problem['loc'])}: {_sentence(problem)}")
    else:
        if declaration.alerts_of == name:
            problems.append(
                f"tool.lozenge.alerts_of{_line(text, ('alerts_of',))}: a detector cannot read its own alerts"
            )
    if problems:
        raise ConfigError(f"reading {origin}: {len(problems)} problem(s)", problems=problems)
    return str(name), str(version), declaration


def _sentence(problem: ErrorDetails) -> str:
    misplaced = problem["type"] == "extra_forbidden" and problem["loc"][-1] in Resources.model_fields
    return f"{problem['msg']}; [tool.lozenge.resources] has it" if misplaced else problem["msg"]


def value_at(project: Any, *path: str) -> Any:
    """What a pyproject.toml has at this path of tables; None if there is nothing."""
    for part in path:
        project = project.get(part) if isinstance(project, dict) else None
    return project


def _line(text: str, path: Place) -> str:
    """ " (line N)" of the last part of `path` that the file has in its declaration, if it has one."""
    places = TomlPlaces.of(text)
    known = places.known(("tool", "lozenge", *path))
    return f" (line {places.line(known)})" if len(known) > 2 else ""
