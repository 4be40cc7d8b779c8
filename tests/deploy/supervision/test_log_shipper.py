"""What the shipper does with files while no broker answers, and how lines become records."""

import json
import time
from pathlib import Path

import pytest

from lozenge.kafka.settings import KafkaSettings
from lozenge_deploy.supervision.log_lines import LINE_BYTES, dropped, fields, whole
from lozenge_deploy.supervision.log_shipper import Shipper

NOBODY = KafkaSettings(bootstrap="127.0.0.1:9")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "job.log"


def test_a_line_is_whole_with_its_newline() -> None:
    assert whole(b"one\ntwo\nthr", ended=False) == [b"one\n", b"two\n"]
    assert whole(b"thr", ended=False) == []
    assert whole(b"", ended=True) == []


def test_the_last_line_of_one_that_has_ended_needs_none() -> None:
    assert whole(b"thr", ended=True) == [b"thr"]


@pytest.mark.parametrize("shift", range(4))
def test_a_line_that_is_too_long_is_cut_between_two_characters(shift: int) -> None:
    text = ("x" * shift + "😀" * LINE_BYTES).encode()
    [piece] = whole(text[:LINE_BYTES], ended=False)
    assert LINE_BYTES - 8 < len(piece) < LINE_BYTES
    assert piece.decode() == "x" * shift + "😀" * (len(piece) // 4)


def test_json_lines_keep_their_keys() -> None:
    line = {"time": "2026-11-21T10:00:00Z", "level": "error", "event": "größer", "batch": 7}
    assert fields(json.dumps(line).encode() + b"\n") == line


@pytest.mark.parametrize("text", ["Traceback (most recent call last):", "  7", "[1]", '{"cut', '{"a":' * 100_000])
def test_any_other_line_is_an_event(text: str) -> None:
    line = fields(f"{text}\r\n".encode())
    assert (line["level"], line["event"]) == ("info", text)
    assert line["time"].endswith("Z")


@pytest.mark.parametrize(
    ("written", "shipped"),
    [
        ("WARN", "warning"),
        ("warning", "warning"),
        ("FATAL", "critical"),
        ("Error", "error"),
        ("trace", "debug"),
        (3, "3"),
    ],
)
def test_a_level_has_one_spelling(written: object, shipped: str) -> None:
    assert fields(json.dumps({"level": written, "event": "x"}).encode()) == {"level": shipped, "event": "x"}


def test_bytes_that_are_no_text_are_shown_as_far_as_they_can_be() -> None:
    assert fields(b"a\xffb\n")["event"] == "a\N{REPLACEMENT CHARACTER}b"


def test_dropped_bytes_are_reported() -> None:
    line = dropped(70)
    assert (line["level"], line["event"], line["bytes"]) == ("warning", "log dropped", 70)


def test_without_a_broker_lines_wait_in_their_file_and_nobody_is_held_up(log: Path) -> None:
    log.write_bytes(b"line\n" * 5000)
    shipper = Shipper(NOBODY)
    shipper.follow(log, "spotter", "g1", "1.0.0")
    shipper.follow(log.with_name("missing.log"), "spotter", "g2", "1.0.0")
    began = time.monotonic()
    for _ in range(100):
        shipper.ship()
    assert time.monotonic() - began < 2
    assert log.read_bytes() == b"line\n" * 5000
    assert not log.with_name("job.log.shipped").exists()
    shipper.close(0)


def test_without_a_broker_a_file_above_its_cap_is_emptied_and_the_loss_noted(log: Path) -> None:
    shipper = Shipper(NOBODY, cap=1000)
    shipper.follow(log, "spotter", "g1", "1.0.0")
    log.write_bytes(b"read\n")
    shipper.ship()
    with log.open("ab") as file:  # as the job does
        for _ in range(3):
            file.write(b"x" * 999 + b"\n")
            file.flush()
            shipper.ship()
            assert log.stat().st_size < 2000
        file.write(b"x" * 2000)
        file.flush()
        shipper.ship()
    assert log.stat().st_size == 0
    position, lost = map(int, log.with_name("job.log.shipped").read_text().split())
    assert position == 0
    assert lost > 3000
    shipper.close(0)


def test_a_file_that_went_away_is_let_go(log: Path) -> None:
    log.write_bytes(b"line\n")
    shipper = Shipper(NOBODY)
    shipper.follow(log, "spotter", "g1", "1.0.0")
    log.unlink()
    shipper.unfollow(log)
    shipper.ship()
    assert shipper.following() == []
    shipper.close(0)
