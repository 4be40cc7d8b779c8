"""What operators ask of the notifier and change in it; every request is a transaction of its own."""

from collections.abc import Callable, Sequence
from typing import Any

from starlette.requests import Request

from lozenge_downstream.api.request_handling import Refused, changing, is_dry
from lozenge_downstream.api.requests import By, NewSilence, Replay, WhichCases
from lozenge_downstream.model import Outcome
from lozenge_downstream.pipeline.pipeline import Pipeline
from lozenge_downstream.store import Store

BATCH = 500


class OperatorApi:
    """Their requests; `wake` says that there is something new to send."""

    def __init__(self, store: Store, pipeline: Pipeline, wake: Callable[[], None]) -> None:
        self._store, self._pipeline, self._wake = store, pipeline, wake

    def requests(self) -> Sequence[tuple[str, str, Callable[[Request, Any], Any]]]:
        """Method and path of each, and what answers it."""
        return [
            ("GET", "/alerts/{id:path}", self._why),
            ("GET", "/cases", self._cases),
            ("GET", "/cases/{id:path}", self._case),
            ("GET", "/silences", self._silences),
            ("POST", "/silences", self._silence),
            ("DELETE", "/silences/{id:path}", self._end_silence),
            ("GET", "/channels", self._channels),
            ("POST", "/channels/{name:path}/enable", self._enable),
            ("GET", "/noise", self._noise),
            ("POST", "/noise/{detector:path}/{what}", self._unpark),
            ("POST", "/replay", self._replay),
        ]

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
        with changing(self._store, request) as t:
            unknown = [name for name, alerts in t.arrivals.raised(names, t.now).items() if not alerts]
            made = t.silences.add(asked.matchers, asked.author, asked.reason, t.now + asked.seconds)
        return {"id": made.id, "ends_at": made.ends_at, "unknown_detectors": unknown}

    def _end_silence(self, request: Request, _: Any) -> Any:
        id = request.path_params["id"]
        with changing(self._store, request) as t:
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
        with changing(self._store, request) as t:
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
        if is_dry(request):
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
        with changing(self._store, request, alone=True) as t:  # or what is sent again could be forgotten meanwhile
            place = (asked.first, asked.partition, self._pipeline.topics.notifications)
            count = t.deliveries.again(asked.channel, *place, rest=asked.rest)
        self._wake()
        return {"channel": asked.channel, "notifications": count}
