"""The notifier over HTTP, for operators and analysts; `lozenge why`, `silence` and other commands use it.

    GET    /alerts/ID                the history of one alert
    GET    /cases?matcher=&limit=    open cases with a matching alert, newest first; /cases/ID has one with its alerts
    GET    /silences                 POST: {matchers, author, reason, seconds}; DELETE /silences/ID ends one
    GET    /routing                  the routing file that is used, and its versions
    GET    /labels                   the names of the labels of the latest alerts
    GET    /channels                 deliveries by channel and state; POST /channels/NAME/{enable,retry}
    GET    /rate-limits              rate-limited alerts by detector; POST /rate-limits/DETECTOR/{release,drop}
    POST   /replay                   {channel, from, partition, all}: sends notifications again
    POST   /erasures                 {key, value}: erases one entity from the store
    POST   /feedback                 {alert_id, verdict, author, note, seconds}
    GET    /feedback/TOKEN           a page for analysts without a login; POST there records its form
    GET    /healthz

All but the last two require the token, if it is set. Errors are {"error", "hint"}. With `?dry_run` a change is
answered and not made.
"""

from collections.abc import Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.routing import Route

from lozenge_downstream.api.erasures import ErasureApi
from lozenge_downstream.api.feedback import FeedbackApi
from lozenge_downstream.api.feedback_records import FeedbackLinks
from lozenge_downstream.api.operators import OperatorApi
from lozenge_downstream.api.request_handling import broken, endpoint, no_such_request
from lozenge_downstream.api.routing import RoutingApi
from lozenge_downstream.pipeline.pipeline import Pipeline
from lozenge_downstream.store import Store


def api(
    store: Store, pipeline: Pipeline, wake: Callable[[], None], token: str, links: FeedbackLinks | None
) -> Starlette:
    """The application. An empty `token` admits every client; without `links` there are no feedback pages."""
    analysts = FeedbackApi(store, pipeline.topics, wake, links)
    requests = [
        *OperatorApi(store, pipeline, wake).requests(),
        *RoutingApi(store, pipeline).requests(),
        *ErasureApi(store).requests(),
    ]
    guarded = [*requests, ("POST", "/feedback", analysts.answer)]
    routes = [Route(path, endpoint(handle, token), methods=[method]) for method, path, handle in guarded]
    routes += [
        Route("/feedback/{token}", analysts.page),
        Route("/feedback/{token}", analysts.answer_by_link, methods=["POST"]),
        Route("/healthz", lambda _: JSONResponse({"ok": True})),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: no_such_request, Exception: broken})
