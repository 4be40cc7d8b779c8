"""Junk in a topic that the platform reads as rows is skipped, and a row that is read can be used.

`FUZZ_RECORDS` records of each topic are made up from `FUZZ_SEED`: a thousand here, a hundred thousand by `make fuzz`.
"""

import json
import os
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from lozenge.contracts.topics import Topics, platform_table, reference_list
from lozenge.file_sources.topics import positions_topic
from lozenge.kafka.row_decoding import SKIPPED, is_logged, row_of
from tests.json_values import SCALARS, nested
from tests.shared.kafka.rows_of_topics import ROWS
from tests.streams import every_topic

RECORDS = int(os.environ.get("FUZZ_RECORDS", "1000"))
SEED = int(os.environ.get("FUZZ_SEED", "1"))
JUNK = (
    *(
        b"",
        b"\x00",
        b"\xff\xfe",
        b"\xef\xbb\xbf{}",
        b"null",
        b"true",
        b"[]",
        b"{}",
        b"[[]]",
        b'"x"',
        b"7",
        b"NaN",
        b"-",
    ),
    *(b"[" * 5000 + b"]" * 5000, b'{"a":' * 5000 + b"1" + b"}" * 5000, b"9" * 5000, b'{"samples": {"a": "b"}}'),
    *(
        b'{"id": "seven"}',
        b'{"id": 2, "schema": "{}"}',
        b'{"name": "event"}',
        b'{"detector": "other"}',
        b"\x00\x00\x00\x00\x01",
    ),
)
NOT_ROWS = {
    *(
        "AUTH-JSON",
        "AUTH-ISO",
        "pay.canonical.auth.v1",
        "pay.canonical.auth.by-terminal.v1",
    ),  # fuzz targets of their own
    *("pay.alerts.spotter.v1", "pay.notifications.v1"),  # Avro, decoded by the contracts' codec
    "lozenge.logs.v1",  # any record is shown as a line
    *("pay.feedback.v1", "lozenge.ctl.audit.v1"),  # nobody of the platform reads them
    *("pay.dlq.upstream.v1", "pay.dlq.downstream.v1", "pay.dlq.spotter.v1"),  # every record is a dead letter
    "lozenge.changelog.spotter.v1",  # a reader takes only rows with the token of its own query
}


KEYED = [
    *("lozenge.ctl.schemas.v1", "lozenge.ctl.deployments.v1", "lozenge.ctl.status.v1", "lozenge.metrics.v1"),
    *("lozenge.state.spotter.v1", "lozenge.list.blocked.v1", "lozenge.ctl.streams.v1"),
    *("lozenge.ctl.sources.v1", "lozenge.ctl.apps.v1", "lozenge.files.night.v1"),
]
"""Topics whose rows say under which key they are."""


class Message:
    """A record as the client gives it."""

    def __init__(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        self._all: dict[str, Any] = {"topic": topic, "partition": 0, "offset": 3, "key": key, "value": value}

    def __getattr__(self, name: str) -> Any:
        return lambda: self._all[name]


def read(topic: str, key: bytes | None, value: bytes | None) -> Any:
    """What a reader of the topic makes of a record; None if it skips it."""
    rows = ROWS[topic]
    message: Any = Message(topic, key, value)
    return row_of(message, lambda key, value: (rows.decode(key, value),))


def test_every_topic_of_the_platform_is_read_by_the_shared_reading_or_is_known_not_to_be() -> None:
    topics = Topics()
    platform = {topic.name for topic in (*every_topic(topics), *topics.detector("spotter").contracts())}
    platform |= {topics.resolutions("spotter").name, reference_list(topics, "blocked").name}
    platform |= {platform_table(topics, "limits").name}
    platform |= {positions_topic(topics, "night").name}
    platform.remove(topics.detector("upstream").coverage)  # as that of a detector
    assert platform == {name.split(" ")[0] for name in ROWS} | NOT_ROWS


@pytest.mark.parametrize("topic", ROWS)
def test_a_good_row_is_read_and_can_be_used(topic: str) -> None:
    [row] = read(topic, ROWS[topic].key, ROWS[topic].value)
    ROWS[topic].use(row)


@pytest.mark.parametrize("topic", ROWS)
def test_junk_is_skipped_and_the_log_says_where_it_is(topic: str) -> None:
    good = ROWS[topic]
    for key, value in ((good.key, junk) for junk in JUNK):
        SKIPPED.clear()
        with capture_logs() as lines:
            assert read(topic, key, value) is None, value[:40]
        assert [(line["topic"], line["partition"], line["offset"]) for line in lines] == [(topic, 0, 3)]


def test_a_flood_of_junk_is_no_flood_of_lines_and_its_size_is_named() -> None:
    SKIPPED.clear()
    with capture_logs() as lines:
        for _ in range(1_234):
            assert read("lozenge.metrics.v1", b"k", b"junk") is None
    assert [line["skipped"] for line in lines] == [1, 2, 3, 10, 100, 1_000]
    assert SKIPPED["lozenge.metrics.v1"] == 1_234
    assert [number for number in range(1, 25) if is_logged(number)] == [1, 2, 3, 10]


@pytest.mark.parametrize("topic", KEYED)
def test_a_row_under_a_key_that_is_not_its_own_replaces_nothing(topic: str) -> None:
    with capture_logs():
        assert read(topic, b"\xff", ROWS[topic].value) is None
        assert read(topic, b"7", ROWS[topic].value) is None


@pytest.mark.parametrize("topic", ROWS)
def test_no_bytes_whatsoever_stop_a_reader(topic: str) -> None:
    random, taken = Random(f"{SEED}/{topic}"), 0
    good = ROWS[topic]
    with capture_logs():
        for _ in range(RECORDS):
            key = good.key if random.random() < 0.9 else mutated(good.key, random)
            value = mutated(good.value, random) if random.random() < 0.9 else random.choice(JUNK)
            if (found := read(topic, key, value)) is not None:
                good.use(found[0])
                taken += 1
    print(f"seed {SEED}, {topic}: {RECORDS} records, {taken} of them rows")


_ANY_JSON = nested(SCALARS | st.floats(), 12)
_OF_JSON = [topic for topic, row in sorted(ROWS.items()) if row.value.startswith(b"{")]


@st.composite
def _changed(draw: st.DrawFn) -> tuple[str, bytes, bytes]:
    """A topic, and a good row of it in which some fields are gone, are others or are of another type."""
    topic = draw(st.sampled_from(_OF_JSON))
    good = ROWS[topic]
    fields: Any = json.loads(good.value)
    if isinstance(fields, dict):
        for name in draw(st.lists(st.sampled_from(sorted(fields)), max_size=3)) if fields else ():
            fields[name] = draw(_ANY_JSON)
        for name in draw(st.lists(st.sampled_from(sorted(fields)), max_size=1)) if fields else ():
            del fields[name]
    return topic, good.key, json.dumps(fields).encode()


@given(_changed() | st.tuples(st.sampled_from(sorted(ROWS)), st.binary(max_size=20), st.binary(max_size=200)))
def test_a_row_of_any_fields_is_read_so_that_it_can_be_used_or_is_skipped(row: tuple[str, bytes, bytes]) -> None:
    topic, key, value = row
    with capture_logs():
        if (found := read(topic, key, value)) is not None:
            ROWS[topic].use(found[0])


_PIECES = (
    *(
        b"",
        b"null",
        b"[]",
        b"{}",
        b"-1",
        b"0",
        b"1e400",
        b"NaN",
        b'"x"',
        b"9" * 30,
        b"true",
        b'"\\u0000"',
        b'"\\ud800"',
    ),
    *(b"1e308", b"-9223372036854775809", b'"9999-12-31T23:59:59Z"', b'"0001-01-01T00:00:00"', b"[" * 2000, b"\xff"),
)


def mutated(value: bytes, random: Random) -> bytes:
    """A good value with something wrong: a token replaced, bytes flipped, cut or inserted."""
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        at, to = sorted(random.randrange(len(value) + 1) for _ in range(2))
        draw = random.random()
        if draw < 0.5:
            value = replaced(value, random)
        elif draw < 0.7 and value:
            at = min(at, len(value) - 1)
            value = value[:at] + bytes([value[at] ^ 1 << random.randrange(8)]) + value[at + 1 :]
        elif draw < 0.85:
            value = value[:at] + random.choice(_PIECES) + value[at:]
        else:
            value = value[:at] + value[to:]
    return value


def replaced(value: bytes, random: Random) -> bytes:
    """One value of the JSON replaced by another piece of JSON."""
    colons = [at for at, byte in enumerate(value) if byte == ord(":")]
    if not colons:
        return value + random.choice(_PIECES)
    start = random.choice(colons) + 1
    end = next((at for at in range(start + 1, len(value)) if value[at : at + 1] in (b",", b"}")), len(value))
    return value[:start] + random.choice(_PIECES) + value[end:]
