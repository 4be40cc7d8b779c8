"""A manifest is refused with every problem, each with the line to change."""

import re
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from lozenge import ddl
from lozenge.contracts.detector_kind import DetectorKind
from lozenge.detector.input_stream import stream_of
from lozenge.detector.manifest import Manifest, parse, read
from lozenge.detector.tables.declared_table import Table, lists_of
from lozenge.errors import ConfigError
from lozenge.streams.project import Streams
from tests.alert_streams import LARGE
from tests.json_values import SCALARS, nested
from tests.merged_streams import BY_ACCOUNT, SIGN_IN
from tests.streams import AUTH, FOLDER, STREAMS

GOOD = """\
[project]
name = "large_amount"
version = "1.2.0"

[tool.lozenge]
kind = "rule"
owner = "fraud"
title = "Large amount"
trigger = "500ms"

[tool.lozenge.tables.limits]
path = "limits.csv"
columns = "mcc string, mcc_limit decimal(18,4)"
"""


def problems(text: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as raised:
        parse(text, "pyproject.toml")
    return raised.value.problems


def test_a_valid_manifest_is_read() -> None:
    name, version, manifest = parse(GOOD, "pyproject.toml")
    assert (name, version, manifest.kind, manifest.owner) == ("large_amount", "1.2.0", "rule", "fraud")
    assert manifest.trigger == timedelta(milliseconds=500)
    assert manifest.tables["limits"].path == "limits.csv"


def test_a_manifest_without_optional_fields_has_the_defaults() -> None:
    manifest = parse(GOOD, "pyproject.toml")[2]
    assert (manifest.stream, manifest.key) == ("", "")
    assert (manifest.severity, manifest.guarantee) == ("medium", "exactly-once")
    assert manifest.lateness is None


def test_every_problem_is_reported_at_once_with_its_line() -> None:
    bad = GOOD.replace("large_amount", "Large-Amount").replace('"rule"', '"rul"').replace('"500ms"', '"soon"')
    found = problems(bad.replace('owner = "fraud"', 'owned = "fraud"'))
    found_at = [problem.split(":")[0] for problem in found]
    assert found_at == [
        "project.name",
        "tool.lozenge.kind (line 6)",
        "tool.lozenge.owner",
        "tool.lozenge.trigger (line 9)",
        "tool.lozenge.owned (line 7)",
    ]
    assert '"soon" is not a duration' in found[3].replace("'", '"')


def test_the_line_is_that_of_the_declaration_and_not_of_an_equal_name_elsewhere() -> None:
    text = GOOD.replace("[tool.lozenge]", '[tool.other]\nkind = "x"\n\n[tool.lozenge]').replace('"rule"', '"rul"')
    tables = '\n[tool.lozenge.tables.a]\npath = "a.parquet"\n\n[tool.lozenge.tables.b]\npath = 5\n'
    found = [problem.split(":")[0] for problem in problems(text + tables)]
    lines = (text + tables).splitlines()
    kind = lines.index('kind = "rul"') + 1
    assert found == [
        f"tool.lozenge.kind (line {kind})",
        f"tool.lozenge.tables.b.path (line {len(lines)})",
    ]


def test_the_error_lists_every_problem_on_a_line_of_its_own() -> None:
    with pytest.raises(ConfigError) as raised:
        parse(GOOD.replace('version = "1.2.0"\n', "").replace('"rule"', '"rul"'), "detectors/x/pyproject.toml")
    text = str(raised.value)
    assert text.startswith("reading detectors/x/pyproject.toml: 2 problem(s)\n  - project.version: missing\n  - ")
    assert raised.value.exit_code == 2


def test_broken_toml_names_the_file() -> None:
    with pytest.raises(ConfigError, match=r"reading x\.toml: .*line 1"):
        parse("[project\n", "x.toml")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"reading .*pyproject\.toml: No such file"):
        read(tmp_path / "pyproject.toml")


@pytest.mark.parametrize("kind", ["model", "script"])
def test_an_unknown_kind_is_rejected_with_those_that_there_are(kind: str) -> None:
    [problem] = problems(GOOD.replace('"rule"', f'"{kind}"'))
    assert problem == "tool.lozenge.kind (line 6): it must be 'rule', 'aggregate' or 'stateful'"


@pytest.mark.parametrize("kind", ["rule", "stateful", "aggregate"])
def test_lateness_and_window_belong_to_aggregates_only(kind: str) -> None:
    text = GOOD.replace('"rule"', f'"{kind}"')
    with_lateness = text.replace("trigger", 'lateness = "10m"\ntrigger')
    with_both = with_lateness.replace("trigger", 'window = "1h"\ntrigger')
    wrong, right = (text, with_both) if kind == "aggregate" else (with_both, text)
    assert "lateness" in problems(wrong)[0]
    assert "window" in problems(with_lateness)[0]
    _, _, manifest = parse(right, "x")
    assert manifest.memory == (timedelta(minutes=70) if kind == "aggregate" else timedelta())


@pytest.mark.parametrize("kind", ["rule", "stateful"])
def test_only_a_detector_with_state_has_a_state_policy(kind: str) -> None:
    text = GOOD.replace('"rule"', f'"{kind}"')
    assert parse(text, "x")[2].state == "keep"
    rebuilt = text.replace("trigger", 'state = "rebuild"\ntrigger')
    if kind == "stateful":
        assert parse(rebuilt, "x")[2].state == "rebuild"
    else:
        assert f"a {kind} has no state" in problems(rebuilt)[0]
    assert "'keep', 'rebuild' or 'fresh'" in problems(rebuilt.replace("rebuild", "forget"))[0]


@pytest.mark.parametrize("kind", ["rule", "stateful"])
@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once", "at-most-once"])
def test_every_kind_may_have_every_guarantee(kind: str, guarantee: str) -> None:
    text = GOOD.replace('"rule"', f'"{kind}"').replace("trigger", f'guarantee = "{guarantee}"\ntrigger')
    assert parse(text, "x")[2].guarantee == guarantee


def test_a_job_that_starts_at_the_newest_event_has_no_policy_for_missed_events() -> None:
    text = GOOD.replace("trigger", 'guarantee = "at-most-once"\nmissed = "skip"\ntrigger')
    assert "remove missed" in problems(text)[0]


@pytest.mark.parametrize("kind", ["rule", "stateful"])
def test_only_a_detector_without_state_may_process_the_newest_events_first(kind: str) -> None:
    text = GOOD.replace('"rule"', f'"{kind}"').replace("trigger", 'backlog = "newest-first"\ntrigger')
    if kind == "stateful":
        assert "depends on the events before" in problems(text)[0]
    else:
        assert parse(text, "x")[2].backlog == "newest-first"


def test_a_manifest_survives_as_json() -> None:
    text = GOOD.replace('"rule"', '"aggregate"').replace("trigger", 'window = "36h"\nlateness = "90s"\ntrigger')
    manifest = parse(text, "x")[2]
    assert Manifest.model_validate_json(manifest.model_dump_json()) == manifest
    assert manifest.model_dump(mode="json")["window"] == "36h"


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({}, "one of path"),
        ({"path": "a.csv", "columns": "a string", "list": "blocked"}, "one of path"),
        ({"list": "blocked", "columns": "value string"}, "a list takes no columns"),
        ({"list": "blocked", "may_be_empty": True}, "a list takes no may_be_empty"),
        ({"table": "limits"}, "needs columns"),
        ({"table": "limits", "columns": "mcc array<string>"}, "no table of the platform holds the type of mcc"),
        ({"table": "limits", "columns": "mcc string", "grows_to": 2}, "takes no grows_to: its table.toml does"),
        ({"list": "Blocked cards"}, "should match pattern"),
    ],
)
def test_a_table_is_a_file_or_a_list_and_a_list_has_columns_of_its_own(table: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        Table.model_validate(table)
    assert ddl.columns(Table(list="blocked").ddl).keys() == {"value", "reason", "author", "added_at", "expires_at"}


def test_a_release_keeps_the_declaration_of_a_list() -> None:
    table = Table(list="blocked")
    assert Table.model_validate_json(table.model_dump_json()) == table


def test_the_lists_of_a_declaration_are_named_once_and_in_order() -> None:
    tables = {"b": {"list": "y"}, "a": {"list": "x"}, "c": {"list": "y"}, "d": {"path": "d.parquet"}}
    declared = {"kind": "rule", "owner": "o", "title": "t", "tables": tables}
    assert lists_of(Manifest.model_validate(declared).tables) == ("x", "y")


def test_a_csv_table_needs_columns_and_no_other_takes_them() -> None:
    assert "columns" in problems(GOOD.replace('columns = "mcc string, mcc_limit decimal(18,4)"\n', ""))[0]
    assert "columns" in problems(GOOD.replace("limits.csv", "limits.parquet"))[0]


def test_the_stream_and_the_key_are_those_of_the_project() -> None:
    declared = Manifest(kind=DetectorKind.RULE, owner="x", title="x")
    assert stream_of(declared, STREAMS, "x") == AUTH
    assert stream_of(declared.model_copy(update={"stream": "auth", "key": "merchant"}), STREAMS, "x") == AUTH


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"stream": "claims"}, "tool.lozenge.stream: .*there is no stream claims: name one of auth, login"),
        ({"key": "wallet"}, "tool.lozenge.key: the stream auth has no key 'wallet', only card, terminal"),
    ],
)
def test_another_stream_or_key_is_refused_with_those_there_are(changed: dict[str, str], problem: str) -> None:
    declared = Manifest(kind=DetectorKind.RULE, owner="x", title="x").model_copy(update=changed)
    with pytest.raises(ConfigError, match=problem):
        stream_of(declared, STREAMS, "pyproject.toml")


COUNTING = {"kind": "aggregate", "lateness": "10m", "window": "1h"}


@pytest.mark.parametrize("kind", [{"kind": "rule"}, COUNTING])
def test_real_time_mode_commits_each_minute_unless_declared_otherwise(kind: dict[str, str]) -> None:
    declared = {**kind, "owner": "fraud", "title": "A test", "mode": "realtime"}
    assert Manifest.model_validate(declared).trigger == timedelta(minutes=1)
    assert Manifest.model_validate(declared | {"trigger": "5s"}).trigger == timedelta(seconds=5)


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ({"kind": "stateful"}, "a fold is processed batch by batch"),
        ({"kind": "rule", "guarantee": "at-most-once"}, "publishes before it commits"),
        (COUNTING | {"guarantee": "at-most-once"}, "publishes before it commits"),
        (COUNTING | {"trigger": "4s"}, "between two commits, 5 s at least, not 4 s"),
        ({"kind": "rule", "trigger": "1s"}, "between two commits, 5 s at least, not 1 s"),
    ],
)
def test_real_time_mode_is_refused_where_it_cannot_keep_what_is_declared(declared: dict[str, str], why: str) -> None:
    text = "\n".join(f'{name} = "{value}"' for name, value in ({"mode": "realtime"} | declared).items())
    [problem] = problems(GOOD.replace('kind = "rule"\n', f"{text}\n").replace('trigger = "500ms"\n', ""))
    assert why in problem


@pytest.mark.parametrize("field", ["title", "owner"])
@pytest.mark.parametrize("text", [" ", "\\t", "\u3000", "\u200b"], ids=ascii)
def test_a_title_or_owner_that_shows_nothing_is_refused(field: str, text: str) -> None:
    value = {"title": "Large amount", "owner": "fraud"}[field]
    (problem,) = problems(GOOD.replace(f'{field} = "{value}"', f'{field} = "{text}"'))
    assert problem.startswith(f"tool.lozenge.{field} (line ")
    assert "it shows nothing" in problem


SEVERAL = {"kind": "stateful", "owner": "o", "title": "t", "streams": ["auth", "sign_in"], "key": "account"}
BOTH = Streams(FOLDER, (AUTH, SIGN_IN))


def test_several_streams_are_read_as_one_by_a_key() -> None:
    declared = Manifest.model_validate(SEVERAL)
    assert Manifest.model_validate_json(declared.model_dump_json()) == declared
    assert stream_of(declared, BOTH, "x") == BY_ACCOUNT


def test_one_of_several_streams_is_a_stream() -> None:
    declared = Manifest.model_validate(SEVERAL | {"streams": ["auth"]})
    assert (declared.stream, declared.streams, stream_of(declared, BOTH, "x")) == ("auth", (), AUTH)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"stream": "auth"}, "stream names one stream, and streams several: remove one of them"),
        ({"stream": "auth", "streams": ["sign_in"]}, "remove one of them"),
        ({"key": ""}, "streams needs key"),
        ({"streams": ["auth", "auth"]}, "streams names a stream twice"),
    ],
)
def test_a_declaration_of_several_streams_that_says_two_things_is_refused(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        Manifest.model_validate(SEVERAL | changed)


@pytest.mark.parametrize(
    ("changed", "problems"),
    [
        (
            {"streams": ("auth", "claims", "login")},
            ["tool.lozenge.streams: .*no stream claims.*name one of auth, sign_in", ".*no stream login.*"],
        ),
        ({"key": "merchant"}, ["tool.lozenge.streams: sign_in has no key merchant, only account, card"]),
    ],
)
def test_streams_that_cannot_be_read_together_are_refused_with_every_problem(
    changed: dict[str, Any], problems: list[str]
) -> None:
    declared = Manifest.model_validate(SEVERAL).model_copy(update=changed)
    with pytest.raises(ConfigError) as refused:
        stream_of(declared, BOTH, "pyproject.toml")
    assert len(refused.value.problems) == len(problems)
    assert all(map(re.fullmatch, problems, refused.value.problems))


ALERTS = {"kind": "rule", "owner": "o", "title": "t", "alerts_of": "large_amount", "key": "card"}


def test_the_alerts_of_a_detector_are_read_as_a_stream() -> None:
    declared = Manifest.model_validate(ALERTS)
    assert Manifest.model_validate_json(declared.model_dump_json()) == declared
    assert stream_of(declared, STREAMS, "x") == LARGE


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"stream": "auth"}, "alerts_of names what it reads, and so does stream: remove one of them"),
        ({"streams": ["auth", "sign_in"]}, "alerts_of names what it reads, and so does stream"),
        ({"key": ""}, "alerts_of needs key"),
        ({"alerts_of": "Large amount"}, "should match pattern"),
    ],
)
def test_a_declaration_of_alerts_that_says_two_things_is_refused(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        Manifest.model_validate(ALERTS | changed)


def test_a_detector_cannot_read_its_own_alerts() -> None:
    text = GOOD.replace('kind = "rule"', 'kind = "rule"\nalerts_of = "large_amount"\nkey = "card"')
    assert problems(text) == ("tool.lozenge.alerts_of (line 7): a detector cannot read its own alerts",)


_VALUES = nested(SCALARS | st.floats() | st.sampled_from(["10m", "card_id", "rule", "0s"]), 6)
_GOOD = {"kind": "aggregate", "owner": "fraud", "title": "Often", "lateness": "10m", "window": "10m"}


@given(st.dictionaries(st.sampled_from(sorted(Manifest.model_fields)), _VALUES, max_size=4))
def test_any_declaration_is_accepted_or_refused_by_validation(declared: dict[str, Any]) -> None:
    with suppress(ValidationError):
        assert Manifest.model_validate(_GOOD | declared).memory.total_seconds() >= 0


@given(st.text(max_size=40) | st.text("[]={}\"'\n.#ab1:-", max_size=60).map(lambda text: GOOD + text))
def test_any_text_of_a_manifest_is_read_or_refused(text: str) -> None:
    with suppress(ConfigError):
        name, version, _ = parse(text, "pyproject.toml")
        assert (name, version) == ("large_amount", "1.2.0")
