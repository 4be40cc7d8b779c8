"""The settings of a detector: immutable, with a stable digest."""

import os
import subprocess
import sys
from datetime import timedelta
from typing import Any
from unittest.mock import MagicMock

import pytest
from pydantic import Field, ValidationError

from lozenge import Duration, Settings, alert


class Limits(Settings):
    within: Duration = timedelta(minutes=10)
    limit: float = 220.0
    names: tuple[str, ...] = ("a", "b")


class Reordered(Settings):
    names: tuple[str, ...] = ("a", "b")
    limit: float = 220.0
    within: Duration = timedelta(minutes=10)


def test_the_digest_is_that_of_the_values() -> None:
    assert Limits().digest == "6f703116dce5", "alerts of older releases carry this digest: it must not change"
    assert Limits(within="600s").digest == Limits().digest == Reordered().digest  # type: ignore[arg-type]
    assert Limits(limit=221.0).digest != Limits().digest


def test_settings_are_immutable_and_know_their_names() -> None:
    with pytest.raises(ValidationError):
        Limits(limits=3)  # type: ignore[call-arg]
    with pytest.raises(ValidationError):
        Limits().limit = 3.0


def test_a_duration_says_what_it_takes() -> None:
    with pytest.raises(ValidationError, match='"90s", "10m", "1h" or "30d"'):
        Limits(within="soon")  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="longer than the longest duration"):
        Limits(within="99999999999999d")  # type: ignore[arg-type]


class Listed(Settings):
    merchants: frozenset[str] = frozenset()
    by_country: dict[str, set[int]] = Field(default_factory=dict)


def test_the_digest_does_not_depend_on_the_order_of_a_set() -> None:
    code = (
        "from tests.shared.detector.test_definition import Listed\n"
        "print(Listed(merchants={'m1', 'm2', 'm3', 'm4'}, by_country={'DE': {8, 0}}).digest)"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, text=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert digests == {Listed(merchants=frozenset(["m4", "m1", "m3", "m2"]), by_country={"DE": {0, 8}}).digest + "\n"}


def test_a_default_is_validated_as_any_other_value() -> None:
    class Text(Settings):
        within: Duration = "10m"  # type: ignore[assignment]

    class Wrong(Settings):
        limit: int = "many"  # type: ignore[assignment]

    assert Text().within == timedelta(minutes=10)
    with pytest.raises(ValidationError, match="valid integer"):
        Wrong()


@pytest.mark.parametrize(
    "given", [{"reason": "Large"}, {"score": "0.9"}, {"values": {"n": 5}}, {"title": 5}, {"labels": {"team": ["a"]}}]
)
def test_a_value_that_is_no_column_is_refused_with_what_to_write(
    given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark.sql.functions", MagicMock())
    monkeypatch.setattr("pyspark.sql.Column", MagicMock)
    with pytest.raises(TypeError, match=r"alert\(\.\.\.\) takes columns: write F\.lit\("):
        alert(**{"reason": MagicMock()} | given)
