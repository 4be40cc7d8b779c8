"""Waits until the running upstream has taken a release of a stream, and at which raw offsets, or has refused it."""

import time
from collections.abc import Collection, Mapping
from contextlib import closing

from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.stream_releases import FollowedStream
from lozenge.kafka.topic_admin import partitions
from lozenge.protocol.stream_releases import StreamDeployment, release_name
from lozenge_deploy.control.client import ChangeFailed, ChangeTimedOut
from lozenge_deploy.observe.stream_history import Since, begun, segments_since
from lozenge_deploy.operations.raw_offset_reset import has_no_member

POLL_SECONDS = 0.2
SILENT_SECONDS = 20.0
"""For so long an upstream that has no member in its group may be about to start."""


def await_taking(
    kafka: KafkaSettings, wanted: StreamDeployment, app: str, topics: Collection[str], covered: int, timeout: float
) -> Since:
    """The raw offsets from which on the normaliser `app` runs the requested release, in every partition of `topics`.

    `covered` is the end of the coverage topic before the request. Raises ChangeFailed if it is refused, another request
    came, or no upstream runs; ChangeTimedOut after `timeout` seconds; BrokerUnavailable.
    """
    name, doing = release_name(wanted.release), f"{wanted.what} of the stream {wanted.stream}"
    began = time.monotonic()
    existing = partitions(kafka)
    expected = {topic: existing[topic] for topic in topics if topic in existing}
    with closing(FollowedStream(kafka, wanted.stream)) as followed:
        while time.monotonic() < began + timeout:
            state = followed.poll()
            if state.deployment is not None and state.deployment.revision != wanted.revision:
                other = state.deployment
                raise ChangeFailed(
                    f"{doing}: {other.what} to {release_name(other.release)} was requested by {other.by} meanwhile",
                    hint=f"`lozenge stream releases {wanted.stream}` shows what is in force",
                )
            if (answer := state.answer) is not None and answer.problems:
                raise ChangeFailed(
                    "\n".join([f"{doing}: upstream refuses {name}", *(f"  - {each}" for each in answer.problems)]),
                    hint=f"{release_name(wanted.fallback)} runs on; nothing is lost. Fix the folder and deploy again",
                )
            if answer is not None and is_complete(since := begun(segments_since(kafka, app, covered), name), expected):
                return since
            if answer is None and time.monotonic() > began + SILENT_SECONDS and has_no_member(kafka, app):
                raise ChangeFailed(
                    f"{doing}: {name} is requested, and no {app} runs that could take it",
                    hint="its next start takes it, if all of it is good; `lozenge up` starts that of a new stream",
                )
            time.sleep(POLL_SECONDS)
    raise ChangeTimedOut(
        f"{doing}: not in force everywhere after {timeout:.0f} s",
        hint=f"it continues; `lozenge stream releases {wanted.stream}` shows its progress",
    )


def is_complete(since: Mapping[str, Mapping[int, int]], expected: Mapping[str, int]) -> bool:
    """Whether the release has begun in every partition of the `expected` topics, or in any if none is known."""
    if not expected:
        return bool(since)
    return all(len(since.get(topic, {})) >= count for topic, count in expected.items())
