"""A feedback link shows a page; only its form changes something."""

from collections.abc import Callable

from lozenge.contracts.topics import Topics
from lozenge_downstream.api.feedback_records import FeedbackLinks
from lozenge_downstream.model import ReceivedRecord
from tests.downstream.api.conftest import Client, alert_id, feedback
from tests.downstream.conftest import Desk

TOPICS = Topics()
MakeRecord = Callable[..., ReceivedRecord]
TOKEN = "a token"
LINKS = FeedbackLinks("a secret of sixteen", "https://lozenge.example.com/")


def test_a_link_shows_a_page_and_says_nothing_by_itself(client: Client, desk: Desk, record: MakeRecord) -> None:
    id = alert_id(desk, record(title="<script>"))
    path = LINKS.make(id).removeprefix("https://lozenge.example.com")
    status, page = client.open("GET", path)
    assert status == 200
    assert "&lt;script&gt;" in page
    assert "<script" not in page
    with desk.store.reading() as t:
        assert t.feedback.counts() == {}
    assert "recorded: false alarm" in client.open("POST", path, {"verdict": "false_alarm", "author": "bob"})[1]
    with desk.store.reading() as t:
        assert t.feedback.counts() == {("large_amount", "r1", "false_alarm"): 1}
    assert "recorded: snooze" in client.open("POST", path, {"verdict": "snooze", "author": "bob"})[1]
    assert feedback(desk)[-1]["snoozed_until"].timestamp() == desk.now + 7 * 86_400
    assert client.open("POST", path, {"verdict": "maybe", "author": "bob"})[0] == 422
    longer = {"verdict": "snooze", "author": "bob", "seconds": "31622400"}
    assert client.open("POST", path, longer)[0] == 422, "the page says for how long"
    assert client.open("GET", path[:-2])[0] == 403
