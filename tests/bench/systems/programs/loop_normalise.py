"""`loop_normalise.py START.json`: raw JSON records become canonical Avro events in a plain loop.

A record that is broken ends it, for want of a dead-letter topic.
"""

from confluent_kafka import Message
from looping import Record, loop
from records import ORDER, encoded_event, normalised


def event(message: Message) -> Record:
    made = normalised(message.value() or b"")
    return encoded_event(made), made["card_id"].encode()


loop(ORDER["raw"], ORDER["input"], event)
