"""The notifier over HTTP: what operators ask and change, and what analysts say. `lozenge why`, `silence` ... use it.

    GET    /alerts/ID                the whole way of one alert
    GET    /cases?match=&limit=      open cases with an alert that matches, newest first; /cases/ID one with its alerts
    GET    /silences                 POST: {matchers, author, reason, seconds}; DELETE /silences/ID ends one
    GET    /channels                 what waits, by channel; POST /channels/NAME/enable
    GET    /noise                    what is parked, by detector; POST /noise/DETECTOR/{release,drop}: {author}
    POST   /replay                   {channel, from, partition, all}: notifications once more
    POST   /verdicts                 {alert_id, verdict, author, note, seconds}
    GET    /verdict/TOKEN            a page for who has no login; POST there says it
    GET    /healthz

All but the last two want the token, if there is one. Errors are {"error", "hint"}. With `?dry_run` a change is
answered and not made.
"""

from collections.abc import Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.routing import Route

from lozenge_downstream.api.feedback import FeedbackApi
from lozenge_downstream.api.feedback_records import Links
from lozenge_downstream.api.operators import OperatorApi
from lozenge_downstream.api.request_handling import answering, broken, no_such_request
from lozenge_downstream.pipeline.pipeline import Pipeline
from lozenge_downstream.store import Store


def api(store: Store, pipeline: Pipeline, wake: Callable[[], None], token: str, links: Links | None) -> Starlette:
    """What a server serves; an empty `token` lets everybody in, and without `links` nobody speaks by one."""
    analysts = FeedbackApi(store, pipeline.topics, wake, links)
    guarded = [*OperatorApi(store, pipeline, wake).requests(), ("POST", "/verdicts", analysts.say)]
    routes = [Route(path, answering(what, token), methods=[method]) for method, path, what in guarded]
    routes += [
        Route("/verdict/{token}", analysts.page),
        Route("/verdict/{token}", analysts.say_by_link, methods=["POST"]),
        Route("/healthz", lambda _: JSONResponse({"ok": True})),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: no_such_request, Exception: broken})
