"""What the check of a mapping accepts runs, and what it refuses takes no other source with it."""

import pytest
from pyspark.sql import Row, SparkSession

from lozenge_upstream.normalise.mapping import Mapping
from lozenge_upstream.normalise.mapping_check import runnable
from lozenge_upstream.normalise.mapping_files import Mappings
from tests.upstream.samples import ISO, JSON, Raw, flat, least_mapping, normalised

ACCEPTED = {
    r"\p{L}[\p{L} ]+": "Größe",
    r"(?<name>[a-z]+)-(?<number>[0-9])": "m-1",
    r"\h*[a-z-]+1": "m-1",
    "[a-z0-9-&&[^x]]+": "m-1",
    r"\N{HYPHEN-MINUS}?m-1": "m-1",
    "a+(?<=a+)b": "aab",
}
"""By pattern, a text of it; "??" is of none."""
REFUSED = ("(?P<name>m)-1", "(", "a{,3}", "(?a)m", "(?#comment)m-1", "(a)?(?(1)b|m-1)", "*", r"\p{Nothing}", r"\Q")


def with_patterns(source: str, **patterns: str) -> Mapping:
    """The mapping of AUTH-JSON with other patterns of these fields."""
    fields = {name: JSON.fields[name].model_copy(update={"pattern": pattern}) for name, pattern in patterns.items()}
    return JSON.model_copy(update={"source": source, "topic": "OTHER", "fields": JSON.fields | fields})


@pytest.fixture(scope="module")
def checked(upstream_spark: SparkSession) -> Mappings:
    """Two good mappings among those with a refused pattern; to plan one takes up to two seconds."""
    wrong = [
        least_mapping(f"wrong_{number}", merchant_id={"transform": "text", "path": "merchant", "pattern": pattern})
        for number, pattern in enumerate(REFUSED)
    ]
    return runnable(upstream_spark, Mappings([ISO, *wrong, JSON], []))


@pytest.mark.parametrize("pattern", REFUSED)
def test_a_pattern_that_java_refuses_refuses_its_mapping_alone(pattern: str, checked: Mappings) -> None:
    assert [mapping.source for mapping in checked.usable] == [ISO.source, JSON.source]
    [refused] = [mapping for mapping in checked.refused if mapping.name == f"wrong_{REFUSED.index(pattern)}"]
    assert refused.topic == "OTHER"
    assert f"merchant_id.pattern: {pattern!r}" in refused.problems[0]


def test_every_accepted_pattern_runs_as_java_understands_it(upstream_spark: SparkSession) -> None:
    fields = ("merchant_id", "terminal_id", "account_id")
    groups = [dict(zip(fields, ACCEPTED, strict=False)), dict(zip(fields, reversed(ACCEPTED), strict=False))]
    assert {pattern for group in groups for pattern in group.values()} == {*ACCEPTED}
    mappings = [with_patterns(str(number), **group) for number, group in enumerate(groups)]
    assert [m.fields for m in runnable(upstream_spark, Mappings(mappings, [])).usable] == [m.fields for m in mappings]
    for mapping, group in zip(mappings, groups, strict=True):
        texts = {name.removesuffix("_id"): ACCEPTED[pattern] for name, pattern in group.items()}
        rows = normalised(upstream_spark, [Raw(flat(**texts)), Raw(flat(**dict.fromkeys(texts, "??")))], mapping)
        assert rows[0].reason is None, group
        assert {*(rows[1].reason or "").split(", ")} == {f"format:{name}" for name in group}


def test_paths_that_differ_only_in_case_are_two_fields(upstream_spark: SparkSession) -> None:
    fields = JSON.fields | {
        "account_id": JSON.fields["account_id"].model_copy(update={"path": "TXNID"}),
        "transaction_id": JSON.fields["transaction_id"].model_copy(update={"path": "txnId"}),
    }
    mapping = JSON.model_copy(update={"fields": fields})
    assert runnable(upstream_spark, Mappings([mapping], [])).refused == []
    [row] = normalised(upstream_spark, [Raw(flat(txnId="t-9", TXNID="a-9"))], mapping)
    assert (row.reason, row.account_id, row.transaction_id) == (None, "a-9", "t-9")


TWICE: tuple[dict[str, object], ...] = ({"Amount": "99.00"}, {"AMOUNT": None}, {"aMOUNT": {"a": 1}})


@pytest.fixture(scope="module")
def with_a_key_twice(upstream_spark: SparkSession) -> list[Row]:
    """Of each of `TWICE` the record in which it comes last, then the one in which it comes first."""
    values = []
    for twice in TWICE:
        last = flat(**twice)
        extra = last[1:-1].rsplit(b", ", 1)[1]
        values += [last, b"{" + extra + b", " + flat()[1:]]
    return normalised(upstream_spark, [Raw(value) for value in values])


@pytest.mark.parametrize("number", range(2 * len(TWICE)))
def test_a_key_in_another_case_is_another_key(number: int, with_a_key_twice: list[Row]) -> None:
    row = with_a_key_twice[number]
    assert (row.reason, str(row.amount)) == (None, "12.5000")
