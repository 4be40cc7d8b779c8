"""A version of the routing file that is invalid is reported and recorded; the last valid one stays active."""

from pathlib import Path
from typing import Any

import pytest

from lozenge.contracts.headers import Headers
from lozenge.errors import ConfigError
from lozenge_downstream.routing.config_reload import ConfigReload, version_of
from lozenge_downstream.routing_watch import RoutingWatch
from tests.downstream.conftest import Desk, MakeRecord

VALID = '[channels.ops]\ntype = "kafka"\ntopic = "ops"\n[route]\nchannels = ["ops"]\n'
INVALID = '[route]\nchannels = ["nobody"]\n'


class Watch:
    """The routing file of a desk, and a watch of it that can be started again."""

    def __init__(self, desk: Desk, file: Path) -> None:
        self._desk, self.file = desk, file
        self.write(VALID)
        self.start()

    def start(self) -> None:
        with self._desk.store.reading() as t:
            used = t.routing_versions.used(str(self.file))
        self._watch = RoutingWatch(
            ConfigReload(self.file, used.text if used else None), self._desk.store, self._desk.pipeline, lambda: None
        )
        self._watch.start()

    def write(self, text: str | bytes) -> str:
        """Writes the file; its version."""
        content = text.encode() if isinstance(text, str) else text
        self.file.write_bytes(content)
        return version_of(content)

    def step(self) -> None:
        self._watch.step()

    def alarms(self) -> list[dict[str, Any]]:
        return [n for n in self._desk.notifications() if n["detector"] == "lozenge"]

    def versions(self) -> list[tuple[str, bool]]:
        """Each version that was read, the newest first, and whether it was valid."""
        with self._desk.store.reading() as t:
            return [(v.version, not v.problems) for v in t.routing_versions.latest(10)]


@pytest.fixture
def watch(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    monkeypatch.setattr("lozenge_downstream.routing.config_reload.POLL_SECONDS", 0.0)
    return Watch(desk, tmp_path / "routing.toml")


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (INVALID, "route.channels: there is no [channels.nobody]"),
        ("", "it is empty"),
        ("[route\n", "line 1"),
        (b"[route]\nname = '\xe4'\n", "it is not UTF-8: line 2"),
        (VALID[:30], "channels.ops.topic: "),
        ('[channels.a]\ntype = "slack"\nurl = { env = "NOT_SET_ANYWHERE" }\n', "NOT_SET_ANYWHERE is not set"),
    ],
    ids=ascii,
)
def test_an_invalid_version_raises_an_alarm_with_file_and_cause_and_the_valid_one_stays(
    desk: Desk, watch: Watch, text: str | bytes, cause: str
) -> None:
    invalid = watch.write(text)
    watch.step()
    watch.step()
    (alarm,) = watch.alarms()
    assert (alarm["title"], alarm["subject"]) == (f"the routing file {watch.file} is invalid", f"routing:{watch.file}")
    assert cause in alarm["text"]
    assert watch.versions() == [(invalid, False), (version_of(VALID.encode()), True)]
    assert (desk.pipeline.routing.route.channels, desk.pipeline.source.version) == (
        ("ops",),
        version_of(VALID.encode()),
    )
    assert ("ops", "due") in desk.deliveries(), "the alarm goes where alerts go"


def test_a_notifier_that_starts_with_an_invalid_file_uses_the_last_valid_version(desk: Desk, watch: Watch) -> None:
    watch.write(INVALID)
    watch.start()
    assert desk.pipeline.routing.route.channels == ("ops",)
    assert desk.pipeline.source.version == version_of(VALID.encode())
    assert len(watch.alarms()) == 1
    watch.write(VALID.replace('"ops"', '"ops2"', 1))
    watch.step()
    assert len(watch.versions()) == 3


def test_without_an_earlier_version_a_notifier_does_not_start_with_an_invalid_file(tmp_path: Path) -> None:
    (tmp_path / "routing.toml").write_text(INVALID)
    with pytest.raises(ConfigError, match=r"there is no \[channels.nobody\]"):
        ConfigReload(tmp_path / "routing.toml")


def test_a_file_that_lacks_a_secret_is_used_once_the_secret_appears(desk: Desk, watch: Watch, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    text = f'[channels.chat]\ntype = "slack"\nurl = {{ file = "{secret}" }}\n[route]\nchannels = ["chat"]\n'
    later = watch.write(text)
    watch.step()
    assert desk.pipeline.routing.route.channels == ("ops",)
    secret.write_text("https://hooks.example.com/x\n")
    watch.step()
    assert desk.pipeline.routing.route.channels == ("chat",)
    assert watch.versions()[0] == (later, True)
    assert len(watch.alarms()) == 1


def test_an_invalid_file_is_not_kept_since_it_may_contain_a_secret(desk: Desk, watch: Watch) -> None:
    watch.write('[channels.a]\ntype = "pagerduty"\nkey = "PLAIN-SECRET"\n')
    watch.step()
    with desk.store.reading() as t:
        newest = t.routing_versions.latest(1)[0]
    assert newest.problems
    assert "PLAIN-SECRET" not in f"{newest} {watch.alarms()}"


def test_a_version_is_recorded_once_and_is_in_every_notification(desk: Desk, watch: Watch, record: MakeRecord) -> None:
    watch.start()
    first = version_of(VALID.encode())
    assert watch.versions() == [(first, True)]
    desk.take(record(0))
    second = watch.write(VALID + "# a comment\n")
    watch.step()
    desk.take(record(1))
    assert [n["routing"] for n in desk.notifications()] == [first, second]
    with desk.store.reading() as t:
        headers: list[Headers] = [dict(row.headers) for row in t.outbox.pending(9)]  # type: ignore[misc]
        (case,) = t.alert_history.of(desk.notifications()[0]["alert_ids"][0])["cases"]  # type: ignore[index]
    assert [found["lozenge-routing"] for found in headers] == [first.encode(), second.encode()]  # type: ignore[call-overload]
    assert case["notification"]["routing"] == first
