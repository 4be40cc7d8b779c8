"""What a request may ask for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from lozenge_downstream.api.requests import NewSilence
from lozenge_downstream.model import SEVERITIES
from lozenge_downstream.routing.matchers import all_match
from tests.downstream.routing.test_matchers import OPEN, WRITTEN


@given(st.lists(WRITTEN | OPEN, max_size=4))
def test_a_silence_does_not_match_every_alert_unless_a_matcher_wants_a_severity(texts: list[str]) -> None:
    try:
        asked = NewSilence.model_validate({"matchers": texts, "author": "a", "reason": "r", "seconds": 1})
    except ValidationError:
        return
    wanted = any(matcher.label == "severity" for matcher in asked.matchers)
    assert wanted or not all(all_match(asked.matchers, {"severity": severity}) for severity in SEVERITIES)


@pytest.mark.parametrize("seconds", [0, -1, 367 * 86_400, 1e300, float("inf"), float("nan"), True, "soon"])
def test_a_silence_lasts_a_year_at_most(seconds: object) -> None:
    with pytest.raises(ValidationError, match=r"at most 366 days|no number|valid number"):
        NewSilence.model_validate({"matchers": ["a = b"], "author": "a", "reason": "r", "seconds": seconds})
