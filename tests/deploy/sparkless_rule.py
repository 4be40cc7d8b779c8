"""What a rule detects, without Spark: an alert on each event above its setting `limit`."""

from collections.abc import Iterable, Iterator

from confluent_kafka import Message

from lozenge.detector.events import Alert
from lozenge.errors import DecodeError
from lozenge.job.batch_result import DraftAlert
from tests.streams import event_codec

EVENT = event_codec()


def draft_alerts(messages: Iterable[Message], limit: object) -> Iterator[DraftAlert]:
    """Drafts from which the real encoder makes the real alert ids. Records that are no events are skipped."""
    for message in messages:
        try:
            event = EVENT.decode(message.value())
        except DecodeError:
            continue
        if event["amount"] > limit:
            at = message.partition() or 0, message.offset() or 0
            yield DraftAlert(
                Alert(reason=str(event["amount"]), evidence=[event["event_id"]]),
                entity=event["card_id"],
                dedup_key=event["event_id"],
                event_time=event["event_time"],
                closes=event["event_time"],
                trigger=at,
                position=at,
            )
