"""What a request may say, checked as it is read: all that is wrong with it is told at once."""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from lozenge_downstream.api import feedback_records
from lozenge_downstream.model import Verdict
from lozenge_downstream.routing.matchers import Condition

MAX_NUMBER, MAX_PARTITION = 2**63 - 1, 2**31 - 1
"""What the store's columns hold."""


def _storable(given: object) -> object:
    """PostgreSQL keeps no text with a NUL in it."""
    if isinstance(given, str) and "\0" in given:
        raise ValueError("a NUL is in it")
    return given


_Id = Annotated[str, BeforeValidator(_storable)]
_Text = Annotated[_Id, Field(min_length=1, max_length=500)]
_Seconds = Annotated[float, Field(gt=0, le=366 * 86_400)]


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class WhichCases(_Asked):
    """The newest `limit` open cases with an alert that fits all of `match`."""

    match: tuple[Condition, ...] = ()
    limit: Annotated[int, Field(ge=1, le=10_000)] = 100


class NewSilence(_Asked):
    """What to silence."""

    matchers: Annotated[tuple[Annotated[Condition, BeforeValidator(_storable)], ...], Field(min_length=1)]
    author: _Text
    reason: _Text
    seconds: _Seconds


class By(_Asked):
    """Who asks."""

    author: _Text


class Replay(_Asked):
    """Notifications of `partition` (None: all) from number `from` on, once more to `channel`.

    They are those that were meant for it; with `all` the others too, as who is new wants them.
    """

    channel: str
    first: Annotated[int, Field(ge=0, le=MAX_NUMBER, alias="from")]
    partition: Annotated[int, Field(ge=0, le=MAX_PARTITION)] | None = None
    rest: Annotated[bool, Field(alias="all")] = False


class OnThePage(_Asked):
    """What the form of a page says."""

    verdict: Verdict
    author: _Text
    note: Annotated[_Id, Field(max_length=2000)] = ""


class Said(OnThePage):
    """A verdict; `seconds` is how long a snooze lasts."""

    alert_id: _Id
    seconds: _Seconds = feedback_records.SNOOZE_SECONDS
