"""A sample's text form is decoded to the name and labels that were encoded."""

import pytest

from lozenge.metrics.sample_text import decode, encode


@pytest.mark.parametrize(
    ("text", "name", "labels"),
    [
        ("a_total", "a_total", {}),
        ("a_bucket{le=+Inf,stage=detect}", "a_bucket", {"stage": "detect", "le": "+Inf"}),
        ("a_total{channel=%25%2C%7D{}", "a_total", {"channel": "%,}{"}),
    ],
)
def test_a_sample_is_its_name_with_its_labels_in_order(text: str, name: str, labels: dict[str, str]) -> None:
    assert encode(name, labels) == text
    assert decode(text) == (name, labels)
