"""What analysts say of alerts: with the token, or by the link in a notification, for who has no login."""

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from lozenge.contracts.avro import Codec
from lozenge.contracts.topics import Topics
from lozenge_downstream.api import feedback_records
from lozenge_downstream.api.feedback_page import alert_page, said_page
from lozenge_downstream.api.request_handling import Refused, body_of, changing, problems
from lozenge_downstream.api.requests import OnThePage, Said
from lozenge_downstream.model import Verdict
from lozenge_downstream.store import Store


class FeedbackApi:
    """Their requests; without `links` there are no pages. `wake` says that there is something new to send."""

    def __init__(
        self, store: Store, topics: Topics, wake: Callable[[], None], links: feedback_records.Links | None
    ) -> None:
        self._store, self._topics, self._wake, self._links = store, topics, wake, links
        self._codec = Codec.of("feedback")

    def say(self, request: Request, body: Any) -> Any:
        """A verdict, by somebody who has the token."""
        return self._heard(request, Said.model_validate(body))

    def _heard(self, request: Request, said: Said) -> Any:
        with changing(self._store, request, alone=True) as t:
            if (alert := t.verdicts.alert(said.alert_id)) is None:
                raise Refused(404, f"no alert {said.alert_id} has come, or it is forgotten")
            answer = {"alert_id": alert.id, "verdict": said.verdict.value}
            if said.verdict is Verdict.SNOOZE:
                answer["silence"] = feedback_records.snooze(
                    alert, said.author, said.note, said.seconds, self._codec, self._topics, t
                ).id
            else:
                feedback_records.record(alert, said.verdict, said.author, said.note, self._codec, self._topics, t)
        self._wake()
        return answer

    async def page(self, request: Request) -> Response:
        """Only shows: mail programs follow links before people do."""
        try:
            alert_id = self._alert_of(request)
        except Refused as no:
            return HTMLResponse(said_page(no.error), no.status)
        with self._store.reading() as t:
            alert = t.verdicts.alert(alert_id)
        return HTMLResponse(alert_page(alert) if alert else said_page("this alert is forgotten"))

    async def say_by_link(self, request: Request) -> Response:
        """What the form of the page says."""
        try:
            alert_id = self._alert_of(request)
            form = parse_qs((await body_of(request)).decode("utf-8", "replace"))
            said = OnThePage.model_validate({name: values[0] for name, values in form.items()})
            answer = await run_in_threadpool(self._heard, request, Said(alert_id=alert_id, **said.model_dump()))
        except Refused as no:
            return HTMLResponse(said_page(no.error), no.status)
        except ValidationError as error:
            return HTMLResponse(said_page("; ".join(problems(error))), 422)
        return HTMLResponse(said_page(f"noted: {answer['verdict'].replace('_', ' ')}"))

    def _alert_of(self, request: Request) -> str:
        if self._links is None:
            raise Refused(404, "there are no such links here")
        try:
            return self._links.alert_of(request.path_params["token"])
        except ValueError as error:
            raise Refused(403, str(error)) from None
