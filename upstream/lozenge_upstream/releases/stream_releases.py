"""The release of a stream that an instance runs, and the next one once all of it is good.

A release that is requested while the instance runs is read and checked as a whole by the session that would run it, in
a thread of its own: the query does not notice. A bad one changes nothing. The log, a metric and the answer in the
control topic name it and everything that is wrong with it.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from pyspark.sql import SparkSession

from lozenge.apps import UPSTREAM
from lozenge.errors import ConfigError, LozengeError, Retryable, SchemaError, first_line
from lozenge.kafka.direct_write import write_directly
from lozenge.kafka.schema_registry import settle_ids
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.stream_releases import FollowedStream
from lozenge.process.logging import logger
from lozenge.protocol.stream_releases import FOLDER, ReleaseId, StreamRelease, StreamReport, record, release_name
from lozenge_upstream.normalise.mapping_files import wrong_mappings
from lozenge_upstream.releases.next_step import Action, RefusedRelease, Step, next_step
from lozenge_upstream.releases.read_release import ReleaseReader, UpstreamRelease

RETRY_SECONDS = 10.0
"""After this time a release is read again that a broker or a registry kept from being read."""


class StreamReleases:
    """What an instance runs and what it is to run; one thread uses it. `in_force` is there after `begin`.

    `refusing` is called with whether a requested release is refused.
    """

    in_force: UpstreamRelease

    def __init__(
        self, kafka: KafkaSettings, followed: FollowedStream, reader: ReleaseReader, refusing: Callable[[bool], None]
    ) -> None:
        self._kafka, self._followed, self._reader, self._refusing = kafka, followed, reader, refusing
        self._refused = dict[RefusedRelease, tuple[str, ...]]()
        self._preparing: tuple[Step, str, Future[UpstreamRelease]] | None = None
        self._next: UpstreamRelease | None = None
        self._not_before = self._answer_at = 0.0

    def first(self) -> UpstreamRelease:
        """The release to begin with, as its files say, before there is a session.

        That is the one to run. If that was never in force and is wrong, it is refused, and that is the fallback. Of
        one that was in force, wrong mappings wait. Raises ConfigError, TopicError, BrokerUnavailable.
        """
        state = self._followed.state
        if state.is_proved:
            return self._reader.read(state, state.to_run)
        try:
            return self._whole(self._reader.read(state, state.to_run))
        except Retryable:
            raise
        except LozengeError as error:
            return self._instead_of_refused(error)

    def begin(self, starting: "Future[SparkSession]", slots: int | None, first: UpstreamRelease) -> None:
        """Puts `first` in force, or its fallback if Spark cannot run it; `slots` limits Real-Time Mode.

        The schema of what was in force before is announced while Spark starts. Raises as `first` does.
        """
        state, self._slots = self._followed.state, slots
        if state.is_proved or first.number != state.to_run:
            self._announce(first)
            self._keep_folder(first)
            self._spark = starting.result()
            self.in_force = first.checked(self._spark)
            return
        self._spark = starting.result()
        try:
            self.in_force = self._ready(first, whole=True)
        except Retryable:
            raise
        except LozengeError as error:
            self.in_force = self._ready(self._instead_of_refused(error))

    def poll(self) -> bool:
        """Looks at what is requested; true once another release is ready to be taken. Never waits."""
        state = self._followed.poll()
        if self._next is not None:
            return True
        if self._preparing is None:
            step = next_step(state, self.in_force.number, self._refused)
            if step.action is Action.PREPARE and time.monotonic() >= self._not_before:
                assert state.deployment is not None, "without a request nothing is prepared"
                future = _in_background(lambda: self._ready(self._reader.read(state, step.number), whole=True))
                self._preparing = step, state.deployment.revision, future
            elif step.action is Action.ANSWER and time.monotonic() >= self._answer_at:
                self._answer()
        elif self._preparing[2].done():
            self._prepared()
        return self._next is not None

    def take(self) -> UpstreamRelease:
        """Puts the release in force that is ready; returns it. A `poll` after that answers the request."""
        assert self._next is not None, "nothing is ready"
        before, self.in_force, self._next = self.in_force, self._next, None
        logger().info(
            f"release {self.in_force.id.name} of the stream {self._stream} is in force",
            digest=self.in_force.id.digest,
            before=before.id.name,
        )
        self._answer_at = 0.0
        return self.in_force

    def known(self, id: ReleaseId) -> UpstreamRelease | None:
        """A release by its name and digest, ready to run; None if it is not kept, or cannot run any more.

        Raises BrokerUnavailable.
        """
        state = self._followed.state
        numbers = [number for number, release in state.releases.items() if release.id == id] or [FOLDER]
        try:
            found = self._ready(self._reader.read(state, numbers[0]))
        except Retryable:
            raise
        except LozengeError:
            return None
        return found if found.id == id and not found.problems else None

    @property
    def _stream(self) -> str:
        return self._followed.state.stream

    def _ready(self, release: UpstreamRelease, *, whole: bool = False) -> UpstreamRelease:
        """The release as this session runs it; `whole` refuses one of which a part is wrong. Its schema is announced.

        Raises ConfigError, SchemaError, BrokerUnavailable, RegistryUnavailable.
        """
        found = release.checked(self._spark)
        if whole:
            self._whole(found)
            if self._slots is not None and found.slots > self._slots:
                raise ConfigError(
                    f"it reads {found.slots} raw partitions, and this process has {self._slots} task slots for "
                    "Real-Time Mode, one for each",
                    hint="stop upstream, deploy with --no-wait, and start it: it then has as many as the release needs",
                )
        self._announce(found)
        return found

    def _announce(self, release: UpstreamRelease) -> None:
        settle_ids(self._kafka, (), [release.target.stream.schema_by_text])

    def _keep_folder(self, running: UpstreamRelease) -> None:
        """Keeps the texts of the folder that runs while nothing was requested: a rollback to it needs them."""
        state, topic = self._followed.state, self._kafka.topics.control.streams
        if state.deployment is not None or not running.texts or topic not in running.partitions:
            return
        kept = StreamRelease(self._stream, FOLDER, dict(running.texts), UPSTREAM, "it ran before the first deploy")
        if state.folder is not None and state.folder.id == kept.id:
            return
        if problem := write_directly(self._kafka, [record(topic, kept)]):
            logger().warning(f"keeping the folder of the stream {self._stream}: {problem}")

    def _whole(self, release: UpstreamRelease) -> UpstreamRelease:
        if release.problems:
            raise wrong_mappings(release.mappings.refused)
        if not release.mappings.usable:
            raise ConfigError("it has no mapping", hint="a stream without a mapping has no events")
        return release

    def _prepared(self) -> None:
        """Takes note of the release that was prepared, or of why it cannot be run."""
        assert self._preparing is not None, "something was prepared"
        (step, revision, future), self._preparing = self._preparing, None
        try:
            found = future.result()
        except Retryable as error:
            self._not_before = time.monotonic() + RETRY_SECONDS
            logger().warning(f"reading release {release_name(step.number)} of {self._stream}: {error.message}")
        except Exception as error:  # whatever is wrong with it, the release in force runs on
            self._refuse(RefusedRelease(revision, step.number), error)
        else:
            if next_step(self._followed.state, self.in_force.number, self._refused) == step:
                self._next = found

    def _instead_of_refused(self, error: LozengeError) -> UpstreamRelease:
        state = self._followed.state
        assert state.deployment is not None, "only what is requested is refused"
        self._refuse(RefusedRelease(state.deployment.revision, state.deployment.release), error)
        return self._reader.read(state, state.deployment.fallback)

    def _refuse(self, refused: RefusedRelease, error: Exception) -> None:
        self._refused[refused] = problems = _problems(error)
        self._answer_at = 0.0
        self._refusing(True)
        logger().error(
            f"release {release_name(refused.number)} of the stream {self._stream} is refused; the last good one runs",
            problems=problems,
            hint=f"`lozenge stream deploy {self._stream}` with a fix, or `lozenge stream rollback {self._stream}`",
        )

    def _answer(self) -> None:
        """Answers the newest request, and does not repeat that before its answer can be read."""
        asked = self._followed.state.deployment
        assert asked is not None, "an answer is to a request"
        problems = self._refused.get(RefusedRelease(asked.revision, asked.release), ())
        self._refusing(bool(problems))
        self._answer_at = time.monotonic() + RETRY_SECONDS
        report = StreamReport(self._stream, asked.revision, asked.release, problems)
        if problem := write_directly(self._kafka, [record(self._kafka.topics.control.streams, report)]):
            logger().warning(f"answering the request for release {release_name(asked.release)}: {problem}")


def _problems(error: Exception) -> tuple[str, ...]:
    if isinstance(error, ConfigError | SchemaError) and error.problems:
        return error.problems
    if isinstance(error, LozengeError):
        return (error.message, error.hint) if error.hint else (error.message,)
    return (f"{type(error).__name__}: {first_line(error)}",)


def _in_background(call: Callable[[], UpstreamRelease]) -> "Future[UpstreamRelease]":
    worker = ThreadPoolExecutor(1, thread_name_prefix="release")
    future = worker.submit(call)
    worker.shutdown(wait=False)
    return future
