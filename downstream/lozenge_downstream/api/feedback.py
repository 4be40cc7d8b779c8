"""The feedback of analysts: with the token, or without a login by the link in a notification."""

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from lozenge import validation
from lozenge.contracts.avro import Codec
from lozenge.contracts.topics import Topics
from lozenge_downstream.api import feedback_records
from lozenge_downstream.api.feedback_page import alert_page, message_page
from lozenge_downstream.api.request_handling import RequestRefused, body_of, changing
from lozenge_downstream.api.requests import FeedbackForm, NewFeedback
from lozenge_downstream.model import Verdict
from lozenge_downstream.store import Store


class FeedbackApi:
    """Answers them. Without `links` there are no pages; `wake` signals that there is something to send."""

    def __init__(
        self, store: Store, topics: Topics, wake: Callable[[], None], links: feedback_records.FeedbackLinks | None
    ) -> None:
        self._store, self._topics, self._wake, self._links = store, topics, wake, links
        self._codec = Codec.of("feedback")

    def answer(self, request: Request, body: Any) -> Any:
        """Records the feedback of a client with the token."""
        return self._record(request, NewFeedback.model_validate(body))

    def _record(self, request: Request, given: NewFeedback) -> Any:
        with changing(self._store, request, exclusive=True) as t:
            if (alert := t.feedback.alert(given.alert_id)) is None:
                raise RequestRefused(404, f"no alert {given.alert_id} was received, or it has expired")
            answer = {"alert_id": alert.id, "verdict": given.verdict.value}
            if given.verdict is Verdict.SNOOZE:
                silence = feedback_records.snooze(
                    alert, given.author, given.note, given.seconds, self._codec, self._topics, t
                )
                answer["silence"] = silence.id
            else:
                feedback_records.record(alert, given.verdict, given.author, given.note, self._codec, self._topics, t)
        self._wake()
        return answer

    async def page(self, request: Request) -> Response:
        """Shows the alert and a form. It changes nothing, because mail programs open links before people do."""
        try:
            alert_id = self._alert_of(request)
        except RequestRefused as no:
            return HTMLResponse(message_page(no.error), no.status)
        with self._store.reading() as t:
            alert = t.feedback.alert(alert_id)
        return HTMLResponse(alert_page(alert) if alert else message_page("this alert has expired"))

    async def answer_by_link(self, request: Request) -> Response:
        """Records the form of the page."""
        try:
            alert_id = self._alert_of(request)
            form = parse_qs((await body_of(request)).decode("utf-8", "replace"))
            once = {name: values if len(values) > 1 else values[0] for name, values in form.items()}
            given = FeedbackForm.model_validate(once)
            feedback = NewFeedback(alert_id=alert_id, **given.model_dump())
            answer = await run_in_threadpool(self._record, request, feedback)
        except RequestRefused as no:
            return HTMLResponse(message_page(no.error), no.status)
        except ValidationError as error:
            return HTMLResponse(message_page("; ".join(validation.sentences(error))), 422)
        return HTMLResponse(message_page(f"recorded: {answer['verdict'].replace('_', ' ')}"))

    def _alert_of(self, request: Request) -> str:
        if self._links is None:
            raise RequestRefused(404, "this notifier has no feedback links")
        try:
            return self._links.alert_of(request.path_params["token"])
        except ValueError as error:
            raise RequestRefused(403, str(error)) from None
