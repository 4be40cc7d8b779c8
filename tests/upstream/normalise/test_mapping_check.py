"""What the check of a mapping accepts runs, and what it refuses takes no other source with it."""

import pytest
from pyspark.sql import SparkSession

from lozenge_upstream.normalise.mapping import Mapping
from lozenge_upstream.normalise.mapping_check import runnable
from lozenge_upstream.normalise.mapping_files import Mappings
from tests.upstream.samples import ISO, JSON, Raw, flat, normalised

ACCEPTED = (
    r"\p{L}[\p{L} ]+",
    r"(?<name>[a-z]+)-(?<number>[0-9])",
    r"\h*[a-z-]+1",
    "[a-z0-9-&&[^x]]+",
    r"\N{HYPHEN-MINUS}?m-1",
)
REFUSED = ("(?P<name>m)-1", "(", "a{,3}", "(?a)m", "(?#comment)m-1", "(a)?(?(1)b|m-1)", "*", r"\p{Nothing}", r"\Q")


def with_pattern(pattern: str) -> Mapping:
    field = JSON.fields["merchant_id"].model_copy(update={"pattern": pattern})
    fields = JSON.fields | {"merchant_id": field}
    return JSON.model_copy(update={"source": "other", "topic": "OTHER", "fields": fields})


@pytest.mark.parametrize("pattern", REFUSED)
def test_a_pattern_that_java_refuses_refuses_its_mapping_alone(pattern: str, upstream_spark: SparkSession) -> None:
    found = runnable(upstream_spark, Mappings([ISO, JSON, with_pattern(pattern)], []))
    assert [mapping.source for mapping in found.usable] == [ISO.source, JSON.source]
    [refused] = found.refused
    assert (refused.name, refused.topic) == ("other", "OTHER")
    assert f"merchant_id: {pattern!r}" in refused.problems[0]


def test_every_accepted_pattern_runs_as_java_understands_it(upstream_spark: SparkSession) -> None:
    mappings = [with_pattern(pattern) for pattern in ACCEPTED]
    assert [m.fields for m in runnable(upstream_spark, Mappings(mappings, [])).usable] == [m.fields for m in mappings]
    texts = ["Größe", "m-1", "m-1", "m-1", "m-1"]
    for mapping, text in zip(mappings, texts, strict=True):
        rows = normalised(upstream_spark, [Raw(flat(merchant=text)), Raw(flat(merchant="??"))], mapping)
        assert [row.reason for row in rows] == [None, "format:merchant_id"], mapping.fields["merchant_id"]


def test_paths_that_differ_only_in_case_are_two_fields(upstream_spark: SparkSession) -> None:
    fields = JSON.fields | {
        "account_id": JSON.fields["account_id"].model_copy(update={"path": "TXNID"}),
        "transaction_id": JSON.fields["transaction_id"].model_copy(update={"path": "txnId"}),
    }
    mapping = JSON.model_copy(update={"fields": fields})
    assert runnable(upstream_spark, Mappings([mapping], [])).refused == []
    [row] = normalised(upstream_spark, [Raw(flat(txnId="t-9", TXNID="a-9"))], mapping)
    assert (row.reason, row.account_id, row.transaction_id) == (None, "a-9", "t-9")


@pytest.mark.parametrize("twice", [{"Amount": "99.00"}, {"AMOUNT": None}, {"aMOUNT": {"a": 1}}])
@pytest.mark.parametrize("first", [True, False])
def test_a_key_in_another_case_is_another_key(
    twice: dict[str, object], first: bool, upstream_spark: SparkSession
) -> None:
    value = flat(**twice)
    if first:
        extra = flat(**twice)[1:-1].rsplit(b", ", 1)[1]
        value = b"{" + extra + b", " + flat()[1:]
    [row] = normalised(upstream_spark, [Raw(value)])
    assert (row.reason, str(row.amount)) == (None, "12.5000")
