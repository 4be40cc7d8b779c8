"""The settings that all Quix Streams applications of the benchmark have."""

from quixstreams import Application
from records import ORDER


def application(group: str) -> Application:
    """With state of its own."""
    return Application(
        broker_address=ORDER["bootstrap"],
        consumer_group=group,
        auto_offset_reset="earliest",
        state_dir=f"{ORDER['folder']}/state-{group}",
        producer_extra_config={"linger.ms": ORDER["linger_ms"], "acks": "all"},
        loglevel="WARNING",
    )
