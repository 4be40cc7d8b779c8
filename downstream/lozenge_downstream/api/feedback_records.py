"""Feedback on alerts: it is published to Kafka, counts in a detector's precision, or silences an entity."""

from collections.abc import Sequence
from datetime import UTC, datetime

from itsdangerous import BadSignature, SignatureExpired, URLSafeTimedSerializer

from lozenge.apps import DOWNSTREAM
from lozenge.contracts import headers
from lozenge.contracts.avro import Codec
from lozenge.contracts.ids import uuid5
from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.topics import Topics
from lozenge_downstream.model import Outgoing, PublishedAlert, Verdict
from lozenge_downstream.routing.matchers import Matcher
from lozenge_downstream.store import Transaction
from lozenge_downstream.store.silences import Silence

TYPE = "lozenge.feedback.v1"
SNOOZE_SECONDS = 7 * 86_400.0
LINK_SECONDS = 30 * 86_400
REPEAT_SECONDS = 60.0
"""An equal snooze is a repetition for so long."""


def snooze(
    alert: PublishedAlert, author: str, note: str, seconds: float, codec: Codec, topics: Topics, t: Transaction
) -> Silence:
    """Silences the detector about the alert's entity for `seconds`, and records the feedback.

    The same request again within a minute, as by a second click, changes nothing: the silence is the one that it made.
    """
    matchers: Sequence[Matcher] = (Matcher("entity", "=", alert.subject), Matcher("detector", "=", alert.detector))
    reason, until = note or "snoozed", t.now + seconds
    for made in t.silences.active():
        same = (made.matchers, made.author, made.reason) == (matchers, author, reason)
        if same and until - REPEAT_SECONDS <= made.ends_at <= until:
            return made
    silence = t.silences.add(matchers, author, reason, until)
    record(alert, Verdict.SNOOZE, author, note, codec, topics, t, until=silence.ends_at)
    return silence


def record(
    alert: PublishedAlert,
    verdict: Verdict,
    author: str,
    note: str,
    codec: Codec,
    topics: Topics,
    t: Transaction,
    until: float | None = None,
) -> None:
    """Stores a verdict and sends it to Kafka. The transaction must be exclusive; a snooze lasts until `until`."""
    t.feedback.add(alert, verdict.value, author, note)
    key = alert.id.encode()
    at = datetime.fromtimestamp(t.now, UTC)
    fields = {
        "alert_id": alert.id,
        "detector": alert.detector,
        "release": alert.release,
        "entity": alert.subject,
        "verdict": verdict.value,
        "author": author,
        "note": note,
        "at": at,
        "snoozed_until": None if until is None else datetime.fromtimestamp(until, UTC),
    }
    partition = partition_of(key, topics.partitions)
    seq = t.outbox.number(topics.feedback, partition)
    id = uuid5("feedback", alert.id, str(seq), str(partition))
    sent = headers.cloud_event(
        id=id, source=f"/{DOWNSTREAM}", type=TYPE, subject=alert.subject, time=at, traceparent=alert.traceparent
    )
    t.outbox.send([Outgoing(topics.feedback, partition, seq, id, key, codec.encode(fields), sent)])


class FeedbackLinks:
    """Signed links to the feedback page of an alert, for analysts without a login; valid for thirty days."""

    def __init__(self, secret: str, public_url: str) -> None:
        self._signer = URLSafeTimedSerializer(secret, salt="lozenge feedback")
        self._url = public_url.rstrip("/")

    def make(self, alert_id: str) -> str:
        """The link for an alert."""
        return f"{self._url}/feedback/{self._signer.dumps(alert_id)}"

    def alert_of(self, token: str) -> str:
        """The alert of a link's token; raises ValueError with what is wrong with it."""
        try:
            return str(self._signer.loads(token, max_age=LINK_SECONDS))
        except SignatureExpired:
            raise ValueError("this link has expired") from None
        except BadSignature:
            raise ValueError("this link is invalid") from None
