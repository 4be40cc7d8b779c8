"""The content of requests, validated as it is read; all problems are reported together."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from lozenge.contracts.display_text import visible
from lozenge.protocol.data_subject import SHORTEST
from lozenge_downstream.api import feedback_records
from lozenge_downstream.model import Verdict
from lozenge_downstream.routing.matchers import Matcher, MatcherField, are_contradictory

MAX_NUMBER, MAX_PARTITION = 2**63 - 1, 2**31 - 1
"""The greatest values of the store's columns."""
MAX_DAYS, DAY = 366, 86_400
"""How long a silence may last, and the seconds of a day."""


def _storable(given: object) -> object:
    """PostgreSQL stores no text with a NUL."""
    if isinstance(given, str) and "\0" in given:
        raise ValueError("it contains a NUL")
    return given


def _selective(matchers: tuple[Matcher, ...]) -> tuple[Matcher, ...]:
    """As in Alertmanager, one matcher at least must not hold for a label that an alert does not have."""
    if all(matcher.is_open for matcher in matchers):
        raise ValueError(
            "each also holds for alerts without its label, so this would mute every alert; "
            "add a matcher that does not, such as 'detector = large_amount', or 'detector =~ \".+\"' to mute all"
        )
    return matchers


def _possible(matchers: tuple[Matcher, ...]) -> tuple[Matcher, ...]:
    if are_contradictory(matchers):
        raise ValueError("no alert matches all of them, so this would mute nothing")
    return matchers


def _no_bool(given: object) -> object:
    """Python takes true for 1."""
    if isinstance(given, bool):
        raise ValueError("it is no number")
    return given


_Id = Annotated[str, BeforeValidator(_storable)]
# limits before validators: pydantic then speaks of characters, not of items
_Text = Annotated[str, Field(min_length=1, max_length=500), BeforeValidator(_storable), AfterValidator(visible)]
_Note = Annotated[str, Field(max_length=2000), BeforeValidator(_storable)]


def _within_a_year(seconds: float) -> float:
    if not 0 < seconds <= MAX_DAYS * DAY:
        raise ValueError(f"it lasts more than nothing and at most {MAX_DAYS} days")
    return seconds


_Seconds = Annotated[float, BeforeValidator(_no_bool), AfterValidator(_within_a_year)]
_Whole = Annotated[int, BeforeValidator(_no_bool)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CaseQuery(_Request):
    """The newest `limit` open cases with an alert that matches every `matcher`."""

    matchers: Annotated[tuple[MatcherField, ...], Field(alias="matcher")] = ()
    limit: Annotated[int, Field(ge=1, le=10_000)] = 100


class NewSilence(_Request):
    """A silence from now on."""

    matchers: Annotated[
        tuple[Annotated[MatcherField, BeforeValidator(_storable)], ...],
        Field(min_length=1),
        AfterValidator(_selective),
        AfterValidator(_possible),
    ]
    author: _Text
    reason: _Text
    seconds: _Seconds


class By(_Request):
    """The author of a change."""

    author: _Text


class NewErasure(_Request):
    """The erasure of one entity: the name of its key, and its id."""

    key: _Text
    value: Annotated[str, Field(min_length=SHORTEST, max_length=500), BeforeValidator(_storable)]


class Replay(_Request):
    """Notifications of `partition` (None: all) from number `from` on, again to `channel`.

    They are those that were routed to it; with `all` the others too, for a new consumer.
    """

    channel: str
    first: Annotated[_Whole, Field(ge=0, le=MAX_NUMBER, alias="from")]
    partition: Annotated[_Whole, Field(ge=0, le=MAX_PARTITION)] | None = None
    rest: Annotated[bool, Field(alias="all")] = False


class FeedbackForm(_Request):
    """The form of a feedback page."""

    verdict: Verdict
    author: _Text
    note: _Note = ""


class NewFeedback(FeedbackForm):
    """An answer to an alert; `seconds` is how long a snooze lasts."""

    alert_id: _Id
    seconds: _Seconds = feedback_records.SNOOZE_SECONDS
