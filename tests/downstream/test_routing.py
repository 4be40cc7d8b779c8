"""The routing file: conditions, the tree, windows; every problem at once, secrets never shown."""

import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lozenge.errors import ConfigError
from lozenge_downstream.channels import kinds
from lozenge_downstream.routing import config as routing_file
from lozenge_downstream.routing.config import Routing
from lozenge_downstream.routing.config_reload import ConfigReload
from lozenge_downstream.routing.examples import failures, routes_of
from lozenge_downstream.routing.matchers import Matcher, parse
from lozenge_downstream.routing.time_intervals import TimeInterval
from lozenge_downstream.routing.tree import Route
from lozenge_downstream.settings import Settings
from tests.downstream.conftest import SECRET

LABELS = {"detector": "large_amount", "severity": "high", "entity": "card:7"}


def routing(tmp_path: Path, text: str) -> Routing:
    file = tmp_path / "routing.toml"
    file.write_text(text)
    return routing_file.routing(file)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ('detector = "large_amount"', True),
        ("detector=large_amount", True),
        ("detector != large_amount", False),
        ("detector =~ large_.*", True),
        ("detector =~ large", False),
        ('detector !~ "(small|large)_amount"', False),
        ("severity >= medium", True),
        ("severity >= critical", False),
        ("severity <= high", True),
        ("team = ops", False),
        ('team = ""', True),
    ],
)
def test_a_condition_is_on_a_whole_label(text: str, holds: bool) -> None:
    matcher = parse(text)
    assert matcher(LABELS) is holds
    assert parse(str(matcher)) == matcher


def test_a_severity_that_nobody_knows_passes_every_limit() -> None:
    assert parse("severity >= critical")({"severity": "dire"})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("detector", "is no matcher such as"),
        ("detector =~ (", "missing ): ("),
        ('entity =~ "(?=card)"', "invalid perl operator: (?="),
        (r"entity =~ (.)\1", "invalid escape sequence"),
        ('entity =~ "((a{999}){999}){999}"', "invalid repetition size"),
        ("score >= 3", "compares severities only"),
        ("severity = dire", "'dire' is none of info, low"),
        (7, "is no matcher"),
    ],
)
def test_a_condition_that_cannot_be_read_says_why(text: object, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        parse(text)


@pytest.mark.parametrize("value", ['a"b', "a\\b", 'a\\"', "end\\", "two\nlines", "", "plain"])
def test_whatever_a_label_holds_can_be_written_as_a_condition_and_read_back(value: str) -> None:
    matcher = Matcher("entity", "=", value)
    assert parse(str(matcher)) == matcher


def test_no_expression_takes_longer_than_its_value_is_long() -> None:
    child = "from lozenge_downstream.routing.matchers import parse; "
    child += """print(parse('entity =~ "card:(a+)+$"')({"entity": "card:" + 100_000 * "a" + "b"}))"""
    done = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, timeout=60)
    assert done.stdout == "False\n", done.stderr  # one that went back could not be stopped in this process


def test_a_backslash_of_an_expression_is_its_own() -> None:
    assert parse(r'entity =~ "card:\d+"')({"entity": "card:17"})


TREE = Route.model_validate(
    {
        "channels": ["ops"],
        "group_by": ["entity"],
        "group_interval": "7m",
        "routes": [
            {"name": "audit", "matchers": ["severity >= low"], "channels": ["archive"], "continue": True},
            {
                "name": "large",
                "matchers": ["detector = large_amount"],
                "group_by": ["detector"],
                "routes": [{"name": "urgent", "matchers": ["severity >= high"], "channels": ["oncall"]}],
            },
            {"name": "never", "matchers": ["detector = large_amount"]},
        ],
    }
)


@pytest.mark.parametrize(
    ("labels", "routes"),
    [
        (LABELS, ["audit", "urgent"]),
        (LABELS | {"severity": "low"}, ["audit", "large"]),
        ({"detector": "other", "severity": "info"}, ["default"]),
        ({"detector": "large_amount", "severity": "info"}, ["large"]),
    ],
)
def test_the_first_child_takes_an_alert_and_else_the_route_itself(labels: dict[str, str], routes: list[str]) -> None:
    assert [route.name for route in TREE.taking(labels)] == routes


def test_a_route_inherits_what_it_does_not_say() -> None:
    audit, urgent = TREE.taking(LABELS)
    assert (audit.group_by, audit.channels) == (("entity",), ("archive",))
    assert (urgent.group_by, urgent.channels, urgent.matchers) == (
        ("detector",),
        ("oncall",),
        (parse("severity >= high"),),
    )
    assert urgent.group_interval.total_seconds() == 420


@pytest.mark.parametrize(
    ("window", "moment", "inside"),
    [
        ({"weekdays": ["mon-fri"], "times": ["08:00-18:00"]}, "2026-03-02T08:00", True),
        ({"weekdays": ["mon-fri"], "times": ["08:00-18:00"]}, "2026-03-02T18:00", False),
        ({"weekdays": ["sat-mon"]}, "2026-03-01T12:00", True),
        ({"weekdays": ["sat-mon"]}, "2026-03-03T12:00", False),
        ({"times": ["22:00-06:00"]}, "2026-03-01T05:59", True),
        ({"times": ["22:00-24:00"]}, "2026-03-01T23:59", True),
        ({"times": ["08:00-18:00"], "location": "Europe/Berlin"}, "2026-03-01T07:30", True),
        ({"days_of_month": [-1]}, "2026-02-28T12:00", True),
        ({"days_of_month": [1, 15]}, "2026-12-15T12:00", True),
        ({"days_of_month": [-1]}, "2026-12-30T12:00", False),
        ({"months": ["nov-jan"]}, "2026-12-01T12:00", True),
        ({}, "2026-12-01T12:00", True),
    ],
)
def test_a_moment_lies_in_a_window(window: dict[str, object], moment: str, inside: bool) -> None:
    assert (datetime.fromisoformat(moment).replace(tzinfo=UTC) in TimeInterval.model_validate(window)) is inside


def test_a_secret_in_a_file_appears_nowhere(tmp_path: Path) -> None:
    (tmp_path / "ops").write_text(SECRET + "\n")
    secret = f'{{ file = "{tmp_path / "ops"}" }}'
    read = routing(tmp_path, f'[channels.ops]\ntype = "webhook"\nurl = "http://h/"\nsecret = {secret}\n')
    assert SECRET not in repr(read)
    assert SECRET not in str(read.model_dump())


def test_noise_is_counted_by_minutes_and_no_route_has_the_roots_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        routing(tmp_path, '[rate_limit]\nwithin = "30s"\n[route]\nname = "a"\n[[route.routes]]\nname = "a"\n')
    assert [problem.partition(":")[0] for problem in caught.value.problems] == [
        "rate_limit.within",
        "route.routes.0.name",
    ]


def test_a_route_may_have_any_text_for_a_name_and_nothing_else(tmp_path: Path) -> None:
    assert routing(tmp_path, '[[route.routes]]\nname = "None"\n').route.routes[0].name == "None"
    with pytest.raises(ConfigError) as caught:
        routing(tmp_path, '[[route.routes]]\nname = ["a"]\n')
    assert caught.value.problems == ("route.routes.0.name: Input should be a valid string",)


def test_every_problem_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHORT", "whsec_c2hvcnQ=")
    monkeypatch.setenv("NOISE", "%%%")
    with pytest.raises(ConfigError) as caught:
        routing(
            tmp_path,
            """
            [channels.a]
            type = "webhook"
            url = "ftp://example.com/"
            secret = { env = "NOT_SET_ANYWHERE" }
            timeout = -1
            [channels.b]
            type = "webhook"
            url = "http://h/"
            secret = [{ env = "SHORT" }, { env = "NOISE" }]
            colour = "red"
            [channels.c]
            type = "slack"
            url = { file = "no-such-file" }
            [channels.d]
            type = "pigeon"
            [channels.e]
            type = "pagerduty"
            key = {}
            [time_intervals.w]
            weekdays = ["mon-someday"]
            times = ["8-18", "08:00-18:00", "25:00-26:00"]
            days_of_month = [32, 1]
            months = ["jan-smarch"]
            location = "Mars"
            [route]
            channels = ["a", "nobody"]
            group_wait = "soon"
            matchers = ["severity = high"]
            [[route.routes]]
            name = "r"
            matchers = ["severity = dire"]
            mute_time_intervals = ["w", "holidays"]
            [[route.routes]]
            name = "r"
            channels = "a"
            [[route.routes]]
            matchers = []
            [[inhibit_rules]]
            source_matchers = []
            target_matchers = ["x"]
            [rate_limit]
            alerts = 0
            [[examples]]
            alert = { severity = 3 }
            [[webhooks]]
            """,
        )
    told = "\n".join(caught.value.problems)
    for part in (
        "channels.a.url",
        "NOT_SET_ANYWHERE is not set",
        "channels.a.timeout",
        "SHORT holds 5 bytes",
        "NOISE does not hold a base64 secret",
        "channels.b.colour",
        "no-such-file: No such file",
        "type is 'pigeon', which is none of alertmanager, apprise, email",
        "channels.e.key: set either",
        "time_intervals.w.weekdays.0: 'mon-someday' is none of mon, tue",
        "time_intervals.w.times.0: '8-18' is no time of day",
        "time_intervals.w.times.2: '25:00-26:00' is no time of day",
        "time_intervals.w.days_of_month.0: 32 is in no month",
        "time_intervals.w.months.0: 'jan-smarch' is none of jan, feb",
        "time_intervals.w.location: 'Mars' is no time zone",
        "route.channels: there is no [channels.nobody]",
        "route.group_wait: 'soon' is not a duration",
        "route: the root takes every alert",
        "'dire' is none of info, low",
        "route.routes.0.mute_time_intervals: there is no [time_intervals.holidays]",
        "route.routes.1.name: 'r' is the name of an earlier route",
        "route.routes.1.channels: Input should be",
        "route.routes.2.name: it is missing",
        "inhibit_rules.0.source_matchers: ",
        "inhibit_rules.0.target_matchers.0: 'x' is no matcher",
        "rate_limit.alerts: ",
        "examples.0.alert.severity: ",
        "webhooks: Extra inputs are not permitted",
    ):
        assert part in told, part
    assert told.count("soon") == 1, "what children inherit is told once"
    assert "%%%" not in str(caught.value)
    assert caught.value.exit_code == 2


ELSEWHERE = """
[channels.a]
type = "webhook"
url = "http://h/"
secret = [{ env = "NOT_SET_ANYWHERE" }, { file = "no-such-file" }]
[channels.b]
type = "email"
host = "h"
from = "a@h"
to = ["b@h"]
password = { env = "NOT_SET_ANYWHERE" }
"""


def test_a_file_whose_secrets_are_elsewhere_can_be_looked_at_and_not_used(tmp_path: Path) -> None:
    (tmp_path / "routing.toml").write_text(ELSEWHERE)
    assert list(routing_file.routing(tmp_path / "routing.toml", secrets=False).channels) == ["a", "b"]
    with pytest.raises(ConfigError) as caught:
        ConfigReload(tmp_path / "routing.toml")
    assert [problem.partition(": ")[0] for problem in caught.value.problems] == [
        "channels.a.secret.0", "channels.a.secret.1", "channels.b.password"
    ]  # fmt: skip


def test_secrets_that_are_elsewhere_are_checked_for_their_form_along_with_all_else(tmp_path: Path) -> None:
    wrong = '[channels.c]\ntype = "slack"\nurl = {}\n[channels.d]\ntype = "pagerduty"\nkey = "PLAIN"\n'
    (tmp_path / "routing.toml").write_text(ELSEWHERE + wrong + "[rate_limit]\nalerts = 0\n")
    with pytest.raises(ConfigError) as caught:
        routing_file.routing(tmp_path / "routing.toml", secrets=False)
    assert [problem.partition(":")[0] for problem in caught.value.problems] == [
        "channels.c.url", "channels.d.key", "rate_limit.alerts"
    ]  # fmt: skip
    assert "PLAIN" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "\n", "# nothing but a remark\n"])
def test_a_file_in_which_nothing_stands_is_wrong(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        routing(tmp_path, text)
    assert caught.value.problems == ("it is empty",)
    assert routing(tmp_path, "[route]\n") == routing_file.routing(None)


def test_broken_toml_names_the_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="at line 2"):
        routing(tmp_path, "[channels]\na = }\n")


WEBHOOK = '[channels.a]\ntype = "webhook"\nurl = "http://h/"\n'


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('[route]\nchannels = [["ops"]]\n', "route.channels.0"),
        ('[route]\nchannels = [{ name = "ops" }]\n', "route.channels.0"),
        ("[route]\nmute_time_intervals = [[1]]\n", "route.mute_time_intervals.0"),
        (WEBHOOK + 'networks = [["127.0.0.0/8"]]\n', "channels.a.networks.0"),
        ("a = " + "[" * 100_000, "it cannot be read"),
    ],
    ids=lambda text: text[:40],
)
def test_whatever_a_file_holds_is_a_problem_that_is_told(tmp_path: Path, text: str, place: str) -> None:
    with pytest.raises(ConfigError) as caught:
        routing(tmp_path, text)
    assert any(problem.startswith(place) for problem in caught.value.problems), caught.value.problems


def test_an_error_that_nobody_foresaw_leaves_the_old_file_in_force_and_quotes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lozenge_downstream.routing.config_reload.POLL_SECONDS", 0.0)
    routing(tmp_path, "[rate_limit]\nalerts = 5\n")
    reloading = ConfigReload(tmp_path / "routing.toml")

    def fail(raw: object) -> None:
        raise ArithmeticError(SECRET)

    monkeypatch.setattr(routing_file, "_cross_references", fail)
    (tmp_path / "routing.toml").write_text("[rate_limit]\nalerts = 7\n")
    assert not reloading.reload()
    assert reloading.current.rate_limit.alerts == 5
    assert "it cannot be read: ArithmeticError" in reloading.problem
    assert SECRET not in reloading.problem


def test_a_new_file_replaces_the_old_one_and_a_wrong_one_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lozenge_downstream.routing.config_reload.POLL_SECONDS", 0.0)
    routing(tmp_path, "[rate_limit]\nalerts = 5\n")
    file = tmp_path / "routing.toml"
    reloading = ConfigReload(file)
    assert not reloading.reload()
    file.write_text("[rate_limit]\nalerts = 7\n")
    assert reloading.reload()
    assert reloading.current.rate_limit.alerts == 7
    for wrong in ("[rate_limit]\nalerts = 0\n", "not toml", "", "# nothing\n"):
        file.write_text(wrong)
        assert not reloading.reload()
        assert reloading.current.rate_limit.alerts == 7
        assert reloading.problem
    file.unlink()
    assert not reloading.reload()
    os.symlink(tmp_path / "other.toml", file)
    (tmp_path / "other.toml").write_text("[rate_limit]\nalerts = 9\n")
    assert reloading.reload()
    assert (reloading.current.rate_limit.alerts, reloading.problem) == (9, "")


def test_examples_say_what_is_not_as_they_say(tmp_path: Path) -> None:
    examples = [
        {"alert": LABELS, "routes": ["audit", "urgent"], "channels": ["oncall", "archive"]},
        {"alert": LABELS | {"severity": "low"}, "channels": ["oncall"]},
        {"alert": {"severity": "info"}, "routes": []},
    ]
    read = Routing.model_validate({"route": TREE, "examples": examples})
    assert list(failures(read)) == [
        ("examples.1", "channels should be oncall, and are archive, ops"),
        ("examples.2", "routes should be none, and are default"),
    ]
    shown = routes_of(read, LABELS)
    assert [s["route"] for s in shown] == ["audit", "urgent"]
    assert shown[0]["case"] == {"entity": "card:7"}


def test_every_file_in_the_folder_of_channels_is_a_type() -> None:
    assert kinds() == ["alertmanager", "apprise", "email", "kafka", "pagerduty", "slack", "webhook"]


def test_settings_name_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOZENGE_DOWNSTREAM_KEEP_DAYS", "0")
    with pytest.raises(ConfigError, match="LOZENGE_DOWNSTREAM_KEEP_DAYS: "):
        Settings.load()


def test_an_address_that_cannot_be_one_is_a_problem_of_the_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOZENGE_DOWNSTREAM_BIND", "127.0.0.1:99999")
    with pytest.raises(ConfigError, match="BIND: a port is at most 65535"):
        Settings.load()
