"""What differs of raw records, in figures and with examples."""

from lozenge_upstream.releases.change_summary import ChangeSummary
from lozenge_upstream.releases.compared_records import UNREAD, Difference

NAMES = ("event_id", "event_time", "mcc", "amount")
EVENT = ("e-1", "1000000", "5411", "12.50")


def difference(offset: int, before: str | tuple[str | None, ...], after: str | tuple[str | None, ...]) -> Difference:
    """An event is its values, anything else its reason."""
    reasons = tuple(each if isinstance(each, str) else None for each in (before, after))
    values = tuple(each if isinstance(each, tuple) else None for each in (before, after))
    return Difference(0, offset, (reasons[0], reasons[1]), (values[0], values[1]))


def test_events_that_differ_are_counted_by_field_and_shown_with_old_and_new_values() -> None:
    found = ChangeSummary(most=1)
    other = ("e-1", "2000000", "5411", None)
    found.add("AUTH-JSON", NAMES, 10, [difference(n, EVENT, other) for n in (3, 4)])
    answer = found.as_json()
    assert (answer["records"], answer["events_differ"]) == (10, 2)
    assert answer["fields"] == {"event_time": 2, "amount": 2}
    assert answer["examples"] == [
        {"topic": "AUTH-JSON", "partition": 0, "offset": 3, "field": "event_time",
         "current": "1970-01-01T00:00:01+00:00", "new": "1970-01-01T00:00:02+00:00"},
        {"topic": "AUTH-JSON", "partition": 0, "offset": 3, "field": "amount", "current": "12.50", "new": None},
    ]  # fmt: skip


def test_dead_letters_and_skipped_records_are_counted_as_more_and_fewer() -> None:
    found = ChangeSummary(most=0)
    found.add(
        "AUTH-JSON",
        NAMES,
        9,
        [
            difference(0, EVENT, "missing:mcc"),
            difference(1, EVENT, "format:mcc"),
            difference(2, "type:amount", EVENT),
            difference(3, "missing:mcc", "format:mcc"),
            difference(4, "missing:mcc", "skip:auth_json/probe"),
            difference(5, UNREAD, EVENT),
        ],
    )
    answer = found.as_json()
    assert (answer["more_dead_letters"], answer["more_skipped"], answer["events_differ"]) == (0, 1, 0)
    assert answer["outcomes"] == {
        "event -> dead letter": 2,
        "dead letter -> event": 1,
        "dead letter -> dead letter": 1,
        "dead letter -> skipped": 1,
        "unread -> event": 1,
    }
    assert answer["examples"] == []


def test_the_reasons_of_what_is_no_event_are_shown_in_words() -> None:
    found = ChangeSummary(most=5)
    found.add(
        "AUTH-JSON", NAMES, 2, [difference(0, EVENT, "missing:mcc"), difference(1, UNREAD, "skip:auth_json/probe")]
    )
    assert [(each["current"], each["new"]) for each in found.examples] == [
        ("event", "dead letter: missing:mcc"),
        ("unread", "skipped: auth_json/probe"),
    ]


def test_a_card_number_is_masked_in_an_example() -> None:
    found = ChangeSummary(most=1)
    found.add("AUTH-JSON", ("note",), 1, [difference(0, ("none",), ("4111111111111111",))])
    assert "4111111111111111" not in str(found.as_json())
