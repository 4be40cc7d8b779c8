"""Requests that upstream run a release of a stream: made in one transaction with the release and its audit record."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from uuid import uuid4

from lozenge.contracts.record import Record
from lozenge.errors import ConfigError, UsageError
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.stream_releases import present_state
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.kafka.writers import TransactionalWriter, exclusively
from lozenge.process.user_name import user_name
from lozenge.process.waiting import wait_until
from lozenge.protocol.stream_releases import (
    FOLDER,
    StreamDeployment,
    StreamRelease,
    StreamState,
    record,
    release_name,
)
from lozenge.streams.release_files import digest_of
from lozenge_deploy.operations import audit

VISIBLE_SECONDS = 10.0
LARGEST_RELEASE = 900_000
"""Bytes of a release, which is one record."""
Request = tuple[StreamDeployment, StreamRelease | None]
"""What is requested, and the release that it needs if that is a new one."""


def deployment_of(state: StreamState, files: dict[str, str], reason: str) -> Request:
    """The request to run these files: as the release that has them, or as a new one.

    Raises UsageError if they are in force already, ConfigError if they are too large.
    """
    if sum(len(text.encode()) for text in files.values()) > LARGEST_RELEASE:
        raise ConfigError(
            f"deploying the stream {state.stream}: its files have more than {LARGEST_RELEASE:,} bytes",
            hint="samples are no part of a release; divide a stream of so many mappings",
        )
    same = [number for number, release in state.releases.items() if release.id.digest == digest_of(files)]
    if not same:
        release = StreamRelease(state.stream, state.next_number(), files, user_name(), reason)
        return _request(state, release.number, "deploy", reason), release
    if state.deployment is not None and same[-1] == state.to_run:
        what = "in force" if state.is_proved else "requested"
        raise UsageError(
            f"deploying the stream {state.stream}: its folder is {release_name(same[-1])}, which is {what} already",
            hint=f"change the folder first; `lozenge stream releases {state.stream}` lists the releases",
        )
    return _request(state, same[-1], "deploy", reason), None


def rollback_of(state: StreamState, to: str, reason: str) -> Request:
    """The request to run an earlier release: `to`, such as "r2", or the one before that in force for "".

    Raises UsageError.
    """
    doing = f"rolling the stream {state.stream} back"
    if state.deployment is None:
        raise UsageError(
            f"{doing}: nothing was ever deployed; its folder is in force",
            hint=f"`lozenge stream deploy {state.stream}` makes its first release",
        )
    names = {release_name(number): number for number in (FOLDER, *state.releases)}
    if to and to not in names:
        raise UsageError(f"{doing}: there is no release {to}", hint=f"name one of {', '.join(names)}")
    wanted = names[to] if to else _before(state)
    if wanted == state.to_run:
        raise UsageError(f"{doing}: {release_name(wanted)} is in force already", hint="--to names another one")
    return _request(state, wanted, "rollback", reason), None


def _before(state: StreamState) -> int:
    """The release that is one lower than that in force; the folder below the first."""
    return max((number for number in state.releases if number < state.to_run), default=FOLDER)


def _request(state: StreamState, number: int, what: str, reason: str) -> StreamDeployment:
    earlier = state.deployment.fallback if state.deployment is not None else FOLDER
    # what was requested last and is not answered may be wrong: then its own fallback is the last good one
    good = state.to_run if state.is_proved else earlier
    fallback = good if good != number else earlier
    return StreamDeployment(state.stream, uuid4().hex[:12], number, fallback, what, user_name(), reason)


def make(
    kafka: KafkaSettings,
    stream: str,
    decide: Callable[[StreamState], Request],
    noted: Mapping[str, str] = MappingProxyType({}),
) -> StreamDeployment:
    """Makes the request on which `decide` decides, given what is known; returns it once every reader sees it.

    Of two at once the later one decides on what the earlier one has left. The audit record has what is `noted`. Raises
    what `decide` raises, and BrokerUnavailable.
    """
    ensure_topics(kafka, kafka.topics.control.contracts())
    return exclusively(kafka, f"lozenge-stream-{stream}", lambda writer: _make(kafka, writer, stream, decide, noted))


def _make(
    kafka: KafkaSettings,
    writer: TransactionalWriter,
    stream: str,
    decide: Callable[[StreamState], Request],
    noted: Mapping[str, str],
) -> StreamDeployment:
    wanted, release = decide(present_state(kafka, stream))
    writer.write([*_records(kafka, wanted, release, noted)])

    def visible() -> bool:
        seen = present_state(kafka, stream).deployment
        return seen is not None and seen.revision == wanted.revision

    wait_until(visible, VISIBLE_SECONDS)
    return wanted


def _records(
    kafka: KafkaSettings, wanted: StreamDeployment, release: StreamRelease | None, noted: Mapping[str, str]
) -> Iterator[Record]:
    topic = kafka.topics.control.streams
    if release is not None:  # before the request for it: who sees that can read the release
        yield record(topic, release)
    yield record(topic, wanted)
    name = release_name(wanted.release)
    asked = {"reason": wanted.reason, "fallback": release_name(wanted.fallback), "revision": wanted.revision}
    detail = {**asked, **noted}
    if release is not None:
        detail["digest"] = release.id.digest
    yield audit.kafka_record(kafka, f"stream {wanted.what}", f"{wanted.stream} {name}", detail)
