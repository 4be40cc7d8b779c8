"""`quix.py START.json`: a Quix Streams application; its state is RocksDB with a changelog topic.

At least once: offsets are committed every five seconds, its default, and what it writes goes out at once.
"""

from typing import Any

from quix_app import application
from quixstreams import State
from records import KIND, ORDER, counted, decoded, encoded, moved, rule


def count(event: dict[str, Any], state: State) -> dict[str, Any] | None:
    now = state.get("count", 0) + 1
    state.set("count", now)
    return counted(event, now)


def follow(event: dict[str, Any], state: State) -> dict[str, Any] | None:
    alert = moved(event, state.get("country"))
    state.set("country", event["country"])
    return alert


def main() -> None:
    app = application(ORDER["name"])
    source = app.topic(ORDER["input"], key_deserializer="str", value_deserializer="bytes")
    sink = app.topic(ORDER["output"], key_serializer="str", value_serializer="bytes")
    events = app.dataframe(source).apply(decoded)
    if KIND == "rule":
        alerts = events.apply(rule)
    else:
        alerts = events.apply(count if KIND == "aggregate" else follow, stateful=True)
    alerts.filter(lambda alert: alert is not None).apply(encoded).to_topic(sink)
    app.run()


main()
