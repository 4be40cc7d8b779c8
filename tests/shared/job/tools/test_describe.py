"""The description of a rule needs neither Spark nor a broker, and its settings can be parsed."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import ConfigDict, computed_field

from lozenge import Detector, Duration, Settings
from lozenge.detector.description import Description
from lozenge.detector.loader import from_folder
from lozenge.errors import ConfigError
from lozenge.job.settings import detector_settings
from lozenge.job.tools.describe import as_json, describe
from lozenge.testing import with_manifest

DETECTORS = Path(__file__).parents[4] / "detectors"


class Several(Settings):
    within: Duration = timedelta(minutes=90)
    limit: Decimal = Decimal("12.50")
    bands: tuple[int, ...] = (3, 6)


several = with_manifest(Detector(lambda events, settings, tables: events, settings=Several))


def test_a_description_survives_as_json() -> None:
    description = describe(from_folder(DETECTORS / "large_amount"))
    assert Description.model_validate_json(description.model_dump_json()) == description
    assert (description.detector, description.kind, description.state_shape) == ("large_amount", "rule", None)
    assert description.settings == {"default_limit": "220"}


def test_settings_are_written_as_people_write_them_and_parse_to_the_same() -> None:
    written = as_json(Several())
    assert written == {"within": "90m", "limit": "12.50", "bands": [3, 6]}
    assert detector_settings(several, written) == Several()


def test_the_schema_has_the_defaults_as_they_are_set() -> None:
    properties = describe(several).settings_schema["properties"]
    assert {name: field["default"] for name, field in properties.items()} == as_json(Several())


def test_a_setting_without_a_default_is_an_error() -> None:
    class Without(Settings):
        limit: int

    with pytest.raises(ConfigError, match="limit"):
        describe(with_manifest(Detector(lambda events, settings, tables: events, settings=Without)))


def test_what_is_computed_of_settings_is_no_setting() -> None:
    class Computed(Settings):
        limits: frozenset[int] = frozenset({3, 1, 2})

        @computed_field  # type: ignore[prop-decorator]
        @property
        def least(self) -> int:
            return min(self.limits)

    loaded = with_manifest(Detector(lambda events, settings, tables: events, settings=Computed))
    description = describe(loaded)
    assert description.settings == {"limits": [1, 2, 3]}
    assert detector_settings(loaded, description.settings) == Computed()


def test_settings_that_no_json_holds_are_an_error_in_words() -> None:
    class Odd(Settings):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        model: object = object()

    with pytest.raises(ConfigError, match="describing under_test: its settings cannot be written as JSON"):
        describe(with_manifest(Detector(lambda events, settings, tables: events, settings=Odd)))
