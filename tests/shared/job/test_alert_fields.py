"""The table of an alert's fields is that of its schema, and Python fills it."""

from typing import Any

import pytest

from lozenge.contracts.detector_kind import DetectorKind
from lozenge.contracts.schemas import newest
from lozenge.contracts.topics import Topics
from lozenge.detector.manifest import Manifest
from lozenge.job.alert_fields import Source, record_fields
from lozenge.job.commit.alert_encoder import filled
from lozenge.job.identity import Identity
from lozenge.protocol.coverage import Versions
from tests.streams import AUTH

FIELDS = record_fields(
    Identity("spotter", "r7", live=True, key="card", topics=Topics(), stream=AUTH),
    Manifest(kind=DetectorKind.RULE, owner="me", title="Spotted", severity="high"),
    Versions("digest", {"limits": "t1"}),
)


def test_the_fields_are_those_of_the_schema_in_its_order() -> None:
    assert list(FIELDS) == [field["name"] for field in newest("alert").definition["fields"]]


@pytest.mark.parametrize(("column", "value"), [("", "fixed"), (None, "fixed"), ("given", "given")])
def test_the_constant_takes_the_place_of_an_empty_column(column: Any, value: str) -> None:
    assert filled({"field": Source("column", "fixed")}, {"column": column}) == {"field": value}


def test_a_column_without_a_constant_is_taken_as_it_is() -> None:
    columns = {"score": 0.0, "trigger": None}
    assert filled({name: Source(name) for name in columns}, columns) == columns


def test_a_field_may_have_fields() -> None:
    fields = {"entity": {"type": Source(constant="card"), "id": Source("entity")}}
    assert filled(fields, {"entity": "card_1"}) == {"entity": {"type": "card", "id": "card_1"}}
