"""Conditions on labels: what they match, how they are written, and why one is refused."""

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lozenge_downstream.model import SEVERITIES
from lozenge_downstream.routing.matchers import Matcher, all_match, are_contradictory, parse

LABELS = {
    "detector": "large_amount",
    "severity": "high",
    "entity": "card:7",
    "card-brand": "visa",
    "card.brand": "visa",
    "k8s/app": "payments",
}


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
        ("card-brand = visa", True),
        ("card.brand!=visa", False),
        ("k8s/app =~ pay.*", True),
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
def test_whatever_a_label_holds_can_be_written_as_a_condition_and_parsed(value: str) -> None:
    matcher = Matcher("entity", "=", value)
    assert parse(str(matcher)) == matcher


def test_no_expression_takes_longer_than_its_value_is_long() -> None:
    child = "from lozenge_downstream.routing.matchers import parse; "
    child += """print(parse('entity =~ "card:(a+)+$"')({"entity": "card:" + 100_000 * "a" + "b"}))"""
    done = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, timeout=60)
    assert done.stdout == "False\n", done.stderr  # one that went back could not be stopped in this process


def test_a_backslash_of_an_expression_is_its_own() -> None:
    assert parse(r'entity =~ "card:\d+"')({"entity": "card:17"})


@pytest.mark.parametrize(
    ("texts", "contradictory"),
    [
        (["detector = a", "detector = b"], True),
        (["detector = a", "detector != a"], True),
        (["detector = a", 'detector =~ "b.*"'], True),
        (["severity >= high", "severity <= low"], True),
        (["severity =~ HIGH"], True),
        (["severity = low", "severity >= low", "detector = a"], False),
        (['detector =~ "a.*"', "detector != ab"], False),
        ([], False),
    ],
)
def test_conditions_that_no_alert_meets_are_found(texts: list[str], contradictory: bool) -> None:
    assert are_contradictory([parse(text) for text in texts]) is contradictory


@pytest.mark.parametrize(
    ("text", "others", "implied"),
    [
        ("detector = a", ["detector = a", "team = b"], True),
        ('detector =~ "a.*"', ["detector = ab"], True),
        ('team =~ ".*"', [], True),
        ("severity >= low", ["severity >= high"], True),
        ("severity != info", ["severity =~ high"], True),
        ("severity >= info", [], True),
        ("severity >= high", ["severity >= low"], False),
        ("detector = a", ['detector =~ "a"'], False),
        ("team != a", [], False),
    ],
)
def test_a_condition_that_others_imply_is_found(text: str, others: list[str], implied: bool) -> None:
    assert parse(text).is_implied_by([parse(other) for other in others]) is implied


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
LABEL = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,9}", fullmatch=True)
OPERATOR = st.sampled_from(["=", "!=", "=~", "!~", ">=", "<="])
WRITTEN = st.builds("{} {} {}".format, LABEL | st.just("severity"), OPERATOR, TEXT)
OPEN = st.sampled_from(['a =~ ".*"', 'a != "b"', 'c = ""', "severity >= info", "severity <= critical"])


@given(LABEL.filter(lambda label: label != "severity"), st.sampled_from(["=", "!="]), TEXT)
def test_a_matcher_of_any_value_is_parsed_from_its_text(label: str, operator: str, value: str) -> None:
    matcher = Matcher(label, operator, value)
    assert parse(str(matcher)) == matcher
    assert matcher({label: value}) is (operator == "=")


@given(TEXT | WRITTEN)
def test_any_text_is_a_matcher_or_is_refused(text: str) -> None:
    try:
        matcher = parse(text)
    except ValueError:
        return
    assert parse(str(matcher)) == matcher
    assert matcher({}) in (True, False)


@given(st.lists(OPEN, min_size=1, max_size=4))
def test_open_matchers_match_alerts_of_every_severity_without_other_labels(texts: list[str]) -> None:
    matchers = [parse(text) for text in texts]
    assert all(matcher.is_open for matcher in matchers)
    assert all(all_match(matchers, {"severity": severity}) for severity in SEVERITIES)


@given(WRITTEN)
def test_a_matcher_that_is_not_open_does_not_match_every_alert(text: str) -> None:
    try:
        matcher = parse(text)
    except ValueError:
        return
    if not matcher.is_open:
        assert not all(matcher(labels) for labels in ({}, *({matcher.label: value} for value in SEVERITIES)))


@given(st.lists(WRITTEN | OPEN, max_size=3), WRITTEN | OPEN, st.data())
def test_no_alert_contradicts_what_is_said_about_conditions(texts: list[str], text: str, data: st.DataObject) -> None:
    try:
        others, matcher = [parse(each) for each in texts], parse(text)
    except ValueError:
        return
    values = [each.value for each in (*others, matcher)] + ["", "x"]
    labels = {each.label: data.draw(st.sampled_from(values)) for each in (*others, matcher)}
    labels["severity"] = data.draw(st.sampled_from(SEVERITIES))
    if all_match(others, labels):
        assert not are_contradictory(others)
        assert matcher(labels) or not matcher.is_implied_by(others)
