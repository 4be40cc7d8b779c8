"""The server listens at the address of the settings, or says why it cannot."""

import pytest
from structlog.testing import capture_logs

from lozenge_downstream.api import api
from lozenge_downstream.api.feedback_records import FeedbackLinks
from lozenge_downstream.api.server import ApiServer
from tests.downstream.conftest import Desk

TOKEN = "a token"
LINKS = FeedbackLinks("a secret of sixteen", "https://lozenge.example.com/")


@pytest.mark.parametrize("bind", ["no..name:0", "192.0.2.1:0"])
def test_an_address_that_cannot_be_bound_is_refused_with_one_sentence(desk: Desk, bind: str) -> None:
    app = api(desk.store, desk.pipeline, lambda: None, TOKEN, LINKS)
    with capture_logs() as said, ApiServer(app, bind) as serving:
        assert serving.port == 0
    assert [line["event"].startswith(f"the API cannot listen at {bind}: ") for line in said] == [True]
