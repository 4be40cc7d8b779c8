"""The routing file: every problem is reported at once, and secrets are never shown."""

from pathlib import Path

import pytest

from lozenge.errors import ConfigError
from lozenge_downstream.channels import kinds
from lozenge_downstream.routing import config as routing_file
from lozenge_downstream.routing.config_reload import ConfigReload
from tests.downstream.conftest import SECRET
from tests.downstream.routing.files import routing


def test_a_secret_in_a_file_appears_nowhere(tmp_path: Path) -> None:
    (tmp_path / "ops").write_text(SECRET + "\n")
    secret = f'{{ file = "{tmp_path / "ops"}" }}'
    read = routing(tmp_path, f'[channels.ops]\ntype = "webhook"\nurl = "http://h/"\nsecret = {secret}\n')
    assert SECRET not in repr(read)
    assert SECRET not in str(read.model_dump())


def test_a_rate_limit_is_per_minutes_and_no_route_has_the_name_of_the_root(tmp_path: Path) -> None:
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
    assert caught.value.problems == ("route.routes.0.name: it must be a text",)


def test_every_problem_is_reported_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    report = "\n".join(caught.value.problems)
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
        "route.routes.1.channels: it must be a list",
        "route.routes.2.name: it is missing",
        "inhibit_rules.0.source_matchers: ",
        "inhibit_rules.0.target_matchers.0: 'x' is no matcher",
        "rate_limit.alerts: ",
        "examples.0.alert.severity: ",
        "webhooks: there is no such field",
    ):
        assert part in report, part
    assert report.count("soon") == 1, "what children inherit is reported once"
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
user = "ann"
password = { env = "NOT_SET_ANYWHERE" }
"""


def test_a_file_whose_secrets_are_elsewhere_can_be_checked_and_not_used(tmp_path: Path) -> None:
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
def test_an_empty_file_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        routing(tmp_path, text)
    assert caught.value.problems == ("it is empty",)
    assert routing(tmp_path, "[route]\n") == routing_file.routing(None)


def test_broken_toml_names_the_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="at line 2"):
        routing(tmp_path, "[channels]\na = }\n")


WEBHOOK = '[channels.a]\ntype = "webhook"\nurl = "http://h/"\n'


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('[route]\nchannels = [["ops"]]\n', "route.channels.0"),
        ('[route]\nchannels = [{ name = "ops" }]\n', "route.channels.0"),
        ("[route]\nmute_time_intervals = [[1]]\n", "route.mute_time_intervals.0"),
        (WEBHOOK + 'networks = [["127.0.0.0/8"]]\n', "channels.a.networks.0"),
        ("a = " + "[" * 100_000, "it cannot be read"),
    ],
    ids=lambda text: text[:40],
)
def test_whatever_a_file_holds_its_problem_is_reported(tmp_path: Path, text: str, field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        routing(tmp_path, text)
    assert any(problem.startswith(field) for problem in caught.value.problems), caught.value.problems


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[[route.routes]]\nname = "a"\nmatcher = []\n', "route.routes.0.matcher: there is no such field"),
        ('[route]\ngroup_by = "entity"\n', 'route.group_by: it must be a list, such as ["a", "b"]'),
        ('route = "ops"\n', "route: it must be a table, with fields of its own"),
        ('[rate_limit]\nwithin = "1s"\n', "rate_limit.within: it must be from 1m to 36500d"),
        ('[route]\nresolve_timeout = "36501d"\n', "route.resolve_timeout: it must be from 1ms to 36500d"),
        (WEBHOOK + "attempts = 0\n", "channels.a.attempts: it must be at least 1"),
        (
            WEBHOOK + 'networks = ["10.0.0.1/8"]\n',
            'channels.a.networks.0: 10.0.0.1/8 has host bits set; a network is written as "10.1.0.0/16"',
        ),
    ],
    ids=lambda text: text[:40],
)
def test_a_problem_is_in_the_words_of_the_file(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        routing(tmp_path, text)
    assert problem in caught.value.problems, caught.value.problems


def test_every_file_in_the_folder_of_channels_is_a_type() -> None:
    assert kinds() == ["alertmanager", "apprise", "email", "kafka", "pagerduty", "slack", "webhook"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path, end: str) -> None:
    text = f"[route]{end}group_by = ['entity']{end}"
    (tmp_path / "routing.toml").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert routing_file.routing(tmp_path / "routing.toml").route.group_by == ("entity",)


@pytest.mark.parametrize(("encoding", "line"), [("latin-1", 2), ("utf-16", 1)])
def test_a_file_that_is_not_utf_8_names_the_line(tmp_path: Path, encoding: str, line: int) -> None:
    (tmp_path / "routing.toml").write_bytes('[route]\nname = "Prüfung"\n'.encode(encoding))
    with pytest.raises(ConfigError, match=f"it is not UTF-8: line {line} has the byte 0x"):
        routing_file.routing(tmp_path / "routing.toml")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[channels.""]\ntype = "kafka"\ntopic = "t"\n', "channels..[key]: "),
        ('[channels."a\\u0000"]\ntype = "kafka"\ntopic = "t"\n', "channels.a\0.[key]: it contains a line end, a NUL"),
        ('[[route.routes]]\nname = "a\\n"\n', "route.routes.0.name: it contains a line end, a NUL"),
        ('[route]\ngroup_by = ["..." , "entity"]\n', 'route.group_by: "..." makes each alert'),
        ('[route]\ngroup_by = ["entity", "entity"]\n', "route.group_by: entity: named twice"),
        ('[route]\ngroup_wait = "-1s"\n', "route.group_wait: "),
        ('[route]\nresolve_timeout = "9999999d"\n', "route.resolve_timeout: "),
        ('[route]\nrepeat_interval = "36501d"\n', "route.repeat_interval: "),
        ('[rate_limit]\nwithin = "99999999d"\n', "rate_limit.within: "),
        (WEBHOOK + "first_retry = inf\n", "channels.a.first_retry: "),
        ('[channels.a]\ntype = "email"\nhost = ""\nfrom = "a@b"\nto = ["c@d"]\n', "channels.a.host: "),
    ],
    ids=lambda text: text[:40],
)
def test_what_would_fail_at_a_notification_is_refused_in_the_file(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        routing(tmp_path, text)
    assert any(found.startswith(problem) for found in caught.value.problems), caught.value.problems


def test_a_channel_that_a_route_names_twice_is_refused(tmp_path: Path) -> None:
    kafka = '[channels.a]\ntype = "kafka"\ntopic = "t"\n'
    with pytest.raises(ConfigError) as caught:
        routing(tmp_path, kafka + '[route]\nchannels = ["a", "a"]\n[[route.routes]]\nname = "r"\n')
    assert caught.value.problems == ("route.channels: a: named twice",)
