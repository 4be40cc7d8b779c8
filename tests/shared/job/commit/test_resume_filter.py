"""Which alerts a job skips because they were published before their offsets were committed."""

from datetime import UTC, datetime

from lozenge.detector.events import Alert
from lozenge.job.batch_result import DraftAlert
from lozenge.job.commit.resume_filter import ResumeFilter

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
DRAFTS = [DraftAlert(Alert(reason="seen"), card, "key", AT, AT) for card in ("card_1", "card_2")]


def card_of(draft: DraftAlert) -> str:
    return draft.entity


def test_what_was_published_is_skipped() -> None:
    assert ResumeFilter(frozenset({"card_1"}), {0: 5}).unpublished(DRAFTS, card_of) == DRAFTS[1:]


def test_without_published_alerts_nothing_is_skipped() -> None:
    assert ResumeFilter().unpublished(DRAFTS, card_of) is DRAFTS


def test_it_holds_until_every_partition_is_past_the_events_of_the_published_alerts() -> None:
    skipped = ResumeFilter(frozenset({"card_1"}), {0: 5, 1: 7})
    assert skipped.after({0: 5, 1: 6}) is skipped
    assert skipped.after({0: 5, 1: 7}) == ResumeFilter()


def test_a_partition_in_which_nothing_was_published_has_no_say() -> None:
    assert ResumeFilter(frozenset({"card_1"}), {0: 5}).after({0: 5, 1: 0}) == ResumeFilter()
