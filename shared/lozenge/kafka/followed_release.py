"""The release that a process is to run, as operators request it: a bad one never replaces the one that runs."""

import time
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

from lozenge.errors import ConfigError, LozengeError, UsageError
from lozenge.kafka.compacted_topic import CompactedTopic
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.process import logging
from lozenge.process.waiting import POLL_SECONDS, wait_until
from lozenge.protocol.declared_releases import Deployed, Q, R, RowFormat, name_of
from lozenge.validation import problem_of

T = TypeVar("T")
LOOK_SECONDS = 0.5
"""How often a process that works looks for another request."""


class FollowedRelease(Generic[R, Q, T]):
    """The release of one owner that is in force, what runs by it, and what is requested; used by one thread."""

    def __init__(
        self, kafka: KafkaSettings, topic: str, rows: RowFormat[R, Q], owner: str, read: Callable[[R], T]
    ) -> None:
        """`read` makes of a release what runs; it raises ValueError or LozengeError for one that cannot run here.

        Raises UsageError if the owner is not deployed, ConfigError if no release of it can run, BrokerUnavailable.
        """
        ensure_topics(kafka, kafka.topics.control.contracts())
        self._format, self._owner, self._read = rows, owner, read
        self._rows = CompactedTopic(kafka, topic, rows.decode)
        self._refused: R | None = None
        try:
            list(self._rows.catch_up())
            state = rows.state_of(owner, self._rows.rows)
            if state.request is None:
                raise UsageError(f"looking for {owner}: it is not deployed", hint="deploy it; `lozenge status` has all")
            self.request = state.request
            self.withdrawn = False
            self.release, self.value = self._first(state)
        except BaseException:
            self.close()
            raise

    @property
    def paused(self) -> bool:
        """Whether it is to do nothing: it is paused, or not deployed any more."""
        return self.withdrawn or self.request.paused

    @property
    def name(self) -> str:
        """Of the release in force: "r3"."""
        return name_of(self.release.number)

    def close(self) -> None:
        """Closes the connection."""
        self._rows.close()

    def turns(self, stop: "StopRequest") -> Iterator["Turn[R, Q, T]"]:
        """What is in force until `stop`, one release after the other; it waits while there is none to run."""
        while not stop.requested:
            if self.paused:
                time.sleep(POLL_SECONDS)
                self.poll()
                continue
            logging.logger().info(f"{self.name} is in force")
            yield Turn(self, stop)

    def poll(self) -> None:
        """Takes what has come, without waiting; a release that cannot run leaves the one in force."""
        if not list(self._rows.poll(0.0)):
            return
        state = self._format.state_of(self._owner, self._rows.rows)
        self.request, self.withdrawn = state.request or self.request, state.request is None
        if state.release is None or state.release in (self.release, self._refused):
            return
        try:
            self.value = self._read(state.release)
            self.release = state.release
        except (ValueError, LozengeError) as error:
            self._refuse(state.release, error, f"{self.name} stays in force")

    def _first(self, state: Deployed[R, Q]) -> tuple[R, T]:
        """The first release that can run, and what runs by it."""
        refused: list[str] = []
        for release in state.to_run:
            try:
                return release, self._read(release)
            except (ValueError, LozengeError) as error:
                refused.append(f"{name_of(release.number)}: {_said(error)}")
                self._refuse(release, error, "the one before it is tried")
        raise ConfigError(
            f"starting {self._owner}: no release of it can run",
            problems=refused or ["its release is not in the topic"],
            hint="correct its declaration, and deploy it again; a variable has to be set where the platform starts: "
            "`lozenge down`, set it, `lozenge up`",
        )

    def _refuse(self, release: R, error: ValueError | LozengeError, then: str) -> None:
        self._refused = release
        logging.logger().error(
            f"release {name_of(release.number)} cannot run, and {then}: {_said(error)}",
            hint=getattr(error, "hint", "") or "correct its declaration, and deploy it again",
        )


class StopRequest(Protocol):
    """A signal to stop, such as a `StopSignal`."""

    @property
    def requested(self) -> bool: ...


class Turn(Generic[R, Q, T]):
    """A release as long as it is in force: it ends on a signal, a pause, or another release. Used by one thread.

    `release` is its name, and `value` what runs by it.
    """

    def __init__(self, followed: FollowedRelease[R, Q, T], stop: StopRequest) -> None:
        self.release, self.value = followed.name, followed.value
        self._followed, self._stop = followed, stop
        self._looked_at = float("-inf")

    @property
    def requested(self) -> bool:
        """Whether the loop is to end."""
        if not self._stop.requested and time.monotonic() - self._looked_at >= LOOK_SECONDS:
            self._looked_at = time.monotonic()
            self._followed.poll()
        return self._stop.requested or self._followed.paused or self._followed.name != self.release

    def wait(self, seconds: float) -> bool:
        """Sleeps for `seconds`, or until the loop is to end; returns whether it is."""
        return wait_until(lambda: self.requested, seconds)


def _said(error: ValueError | LozengeError) -> str:
    return " ".join(error.message.split()) if isinstance(error, LozengeError) else problem_of(error)
