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

import hmac
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any
from urllib.parse import parse_qs

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from lozenge import topics
from lozenge.avro import Codec
from lozenge.errors import LozengeError
from lozenge_downstream import verdicts
from lozenge_downstream.model import Outcome, Verdict
from lozenge_downstream.page import alert_page, said_page
from lozenge_downstream.pipeline import Pipeline
from lozenge_downstream.routing.matchers import Condition
from lozenge_downstream.store import Store, Transaction

BATCH = 500
MAX_BODY = 256 * 1024
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


class Refused(Exception):
    """A request that cannot be answered as it is: HTTP `status`, what is wrong, and what to do."""

    def __init__(self, status: int, error: str, hint: str = "") -> None:
        super().__init__(error)
        self.status, self.error, self.hint = status, error, hint


class _TakenBack(Exception):
    """Ends a transaction of which nothing is to stay."""


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
    seconds: _Seconds = verdicts.SNOOZE_SECONDS


class Api:
    """The requests, over one store; every one is a transaction of its own."""

    def __init__(
        self, store: Store, pipeline: Pipeline, wake: Callable[[], None], token: str, links: verdicts.Links | None
    ) -> None:
        self._store, self._pipeline, self._wake, self._links = store, pipeline, wake, links
        self._token = token
        self._codec = Codec.of("feedback")

    def app(self) -> Starlette:
        """What a server serves."""
        guarded = [
            ("/alerts/{id:path}", "GET", self._why),
            ("/cases", "GET", self._cases),
            ("/cases/{id:path}", "GET", self._case),
            ("/silences", "GET", self._silences),
            ("/silences", "POST", self._silence),
            ("/silences/{id:path}", "DELETE", self._end_silence),
            ("/channels", "GET", self._channels),
            ("/channels/{name:path}/enable", "POST", self._enable),
            ("/noise", "GET", self._noise),
            ("/noise/{detector:path}/{what}", "POST", self._unpark),
            ("/replay", "POST", self._replay),
            ("/verdicts", "POST", self._say),
        ]
        routes = [Route(path, self._answer(what), methods=[method]) for path, method, what in guarded]
        routes += [
            Route("/verdict/{token}", self._page),
            Route("/verdict/{token}", self._say_by_link, methods=["POST"]),
            Route("/healthz", lambda _: JSONResponse({"ok": True})),
        ]
        return Starlette(routes=routes, exception_handlers={HTTPException: _no_such_request, Exception: _broken})

    def _answer(self, what: Callable[[Request, Any], Any]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            try:
                self._let_in(request)
                if "\0" in request.url.path:
                    raise Refused(422, "a NUL is in the path")
                body = await _json(request) if request.method == "POST" else None
                return JSONResponse(await run_in_threadpool(what, request, body))
            except Refused as no:
                return JSONResponse({"error": no.error, "hint": no.hint}, no.status)
            except ValidationError as error:
                return JSONResponse({"error": "; ".join(_problems(error)), "hint": ""}, 422)
            except LozengeError as error:
                return JSONResponse({"error": error.message, "hint": error.hint}, 503)

        return answer

    def _let_in(self, request: Request) -> None:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self._token and not hmac.compare_digest(given.encode(), self._token.encode()):
            raise Refused(401, "the token does not fit", "set LOZENGE_NOTIFIER_TOKEN to the notifier's")

    @contextmanager
    def _changing(self, request: Request, *, alone: bool = False) -> Iterator[Transaction]:
        """A transaction, of which nothing stays in a dry run."""
        with suppress(_TakenBack), self._store.transaction(alone=alone) as t:
            yield t
            if _dry(request):
                raise _TakenBack

    def _why(self, request: Request, _: Any) -> Any:
        id = request.path_params["id"]
        with self._store.reading() as t:
            if (found := t.history.of(id)) is None:
                raise Refused(
                    404, f"no alert {id!r} has come", "is its detector's alert topic read? see `lozenge peek`"
                )
            return found

    def _cases(self, request: Request, _: Any) -> Any:
        given = request.query_params
        asked = WhichCases.model_validate({**given, "match": given.getlist("match")})
        with self._store.reading() as t:
            return t.overview.open(asked.match, asked.limit)

    def _case(self, request: Request, _: Any) -> Any:
        id = request.path_params["id"]
        with self._store.reading() as t:
            if (found := t.overview.of(id)) is None:
                raise Refused(404, f"there is no case {id!r}, or it is forgotten", "`lozenge cases ls` shows open ones")
            return found

    def _silences(self, _: Request, __: Any) -> Any:
        with self._store.reading() as t:
            return [
                {"id": s.id, "matchers": [str(m) for m in s.matchers], "author": s.author, "reason": s.reason,
                 "starts_at": s.starts_at, "ends_at": s.ends_at, "active": s.starts_at <= t.now < s.ends_at}
                for s in t.silences.all()
            ]  # fmt: skip

    def _silence(self, request: Request, body: Any) -> Any:
        asked = NewSilence.model_validate(body)
        names = [m.value for m in asked.matchers if (m.label, m.operator) == ("detector", "=")]
        with self._changing(request) as t:
            unknown = [name for name, alerts in t.arrivals.raised(names, t.now).items() if not alerts]
            made = t.silences.add(asked.matchers, asked.author, asked.reason, t.now + asked.seconds)
        return {"id": made.id, "ends_at": made.ends_at, "unknown_detectors": unknown}

    def _end_silence(self, request: Request, _: Any) -> Any:
        id = request.path_params["id"]
        with self._changing(request) as t:
            if not t.silences.expire(id):
                raise Refused(404, f"no silence {id!r} holds", "`lozenge silence ls` shows those that do")
        return {"id": id}

    def _channels(self, _: Request, __: Any) -> Any:
        with self._store.reading() as t:
            standing, off = t.deliveries.standing(), t.deliveries.disabled()
        names = sorted({*self._pipeline.routing.channels, *(name for name, _ in standing)})
        states = ("due", "sent", "failed")
        return [
            {"channel": name} | {state: standing.get((name, state), 0) for state in states} | {"off": off.get(name)}
            for name in names
        ]

    def _enable(self, request: Request, _: Any) -> Any:
        name = request.path_params["name"]
        with self._changing(request) as t:
            if not t.deliveries.enable(name):
                raise Refused(404, f"channel {name!r} is not off", "`lozenge channels ls` shows those that are")
        self._wake()
        return {"channel": name}

    def _noise(self, _: Request, __: Any) -> Any:
        with self._store.reading() as t:
            return [{"detector": name, "parked": count} for name, count in sorted(t.arrivals.parked().items())]

    def _unpark(self, request: Request, body: Any) -> Any:
        by, what = By.model_validate(body), request.path_params["what"]
        if what not in ("release", "drop"):
            raise Refused(404, f"{what} is neither release nor drop")
        outcome = Outcome.ACCEPTED if what == "release" else Outcome.DROPPED
        detector, total = request.path_params["detector"], 0
        if _dry(request):
            with self._store.reading() as t:
                return {"detector": detector, "alerts": t.arrivals.parked().get(detector, 0)}
        while True:
            with self._store.transaction(alone=True) as t:
                reason = f"parked, and {what}{'d' if what == 'release' else 'ped'} by {by.author}"
                alerts = t.arrivals.take_parked(detector, outcome, reason, BATCH)
                if outcome is Outcome.ACCEPTED:
                    self._pipeline.take(alerts, t)
            total += len(alerts)
            if len(alerts) < BATCH:
                self._wake()
                return {"detector": detector, "alerts": total}

    def _replay(self, request: Request, body: Any) -> Any:
        asked = Replay.model_validate(body)
        if asked.channel not in self._pipeline.routing.channels:
            known = ", ".join(self._pipeline.routing.channels) or "none"
            raise Refused(404, f"there is no channel {asked.channel}, only {known}")
        with self._changing(request, alone=True) as t:  # or what is sent again could be forgotten meanwhile
            place = (asked.first, asked.partition, topics.NOTIFICATIONS)
            count = t.deliveries.again(asked.channel, *place, rest=asked.rest)
        self._wake()
        return {"channel": asked.channel, "notifications": count}

    def _say(self, request: Request, body: Any) -> Any:
        return self._heard(request, Said.model_validate(body))

    def _heard(self, request: Request, said: Said) -> Any:
        with self._changing(request, alone=True) as t:
            if (alert := t.verdicts.alert(said.alert_id)) is None:
                raise Refused(404, f"no alert {said.alert_id} has come, or it is forgotten")
            answer = {"alert_id": alert.id, "verdict": said.verdict.value}
            if said.verdict is Verdict.SNOOZE:
                answer["silence"] = verdicts.snooze(alert, said.author, said.note, said.seconds, self._codec, t).id
            else:
                verdicts.record(alert, said.verdict, said.author, said.note, self._codec, t)
        self._wake()
        return answer

    async def _page(self, request: Request) -> Response:
        """Only shows: mail programs follow links before people do."""
        try:
            alert_id = self._alert_of(request)
        except Refused as no:
            return HTMLResponse(said_page(no.error), no.status)
        with self._store.reading() as t:
            alert = t.verdicts.alert(alert_id)
        return HTMLResponse(alert_page(alert) if alert else said_page("this alert is forgotten"))

    async def _say_by_link(self, request: Request) -> Response:
        try:
            alert_id = self._alert_of(request)
            form = parse_qs((await _body(request)).decode("utf-8", "replace"))
            said = OnThePage.model_validate({name: values[0] for name, values in form.items()})
            answer = await run_in_threadpool(self._heard, request, Said(alert_id=alert_id, **said.model_dump()))
        except Refused as no:
            return HTMLResponse(said_page(no.error), no.status)
        except ValidationError as error:
            return HTMLResponse(said_page("; ".join(_problems(error))), 422)
        return HTMLResponse(said_page(f"noted: {answer['verdict'].replace('_', ' ')}"))

    def _alert_of(self, request: Request) -> str:
        if self._links is None:
            raise Refused(404, "there are no such links here")
        try:
            return self._links.alert_of(request.path_params["token"])
        except ValueError as error:
            raise Refused(403, str(error)) from None


def _dry(request: Request) -> bool:
    return "dry_run" in request.query_params


async def _json(request: Request) -> Any:
    """The body; what a page in somebody's browser may send elsewhere without asking is of another type, and refused."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "the body is not said to be JSON", "send it with content-type: application/json")
    body = await _body(request)
    try:
        return json.loads(body)
    except (ValueError, RecursionError):  # the latter for what is nested too deep
        raise Refused(400, "the body is no JSON") from None


async def _body(request: Request) -> bytes:
    """All of the body, if it is no longer than any that is meant."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise Refused(413, f"the body is longer than {MAX_BODY // 1024} KiB")
    return bytes(body)


def _no_such_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    asked = f"{request.method} {request.url.path}"
    return JSONResponse({"error": f"{asked}: {error.detail}", "hint": ""}, error.status_code, error.headers)


def _broken(_: Request, error: Exception) -> Response:
    """The stack goes to the log."""
    hint = "its log says more; it is a mistake in the notifier"
    return JSONResponse({"error": f"the notifier failed at this: {type(error).__name__}", "hint": hint}, 500)


def _problems(error: ValidationError) -> list[str]:
    return [f"{'.'.join(map(str, e['loc']))}: {e['msg'].removeprefix('Value error, ')}" for e in error.errors()]
