"""The requests of operators; each is a transaction of its own."""

from collections.abc import Callable, Sequence
from typing import Any

from starlette.requests import Request

from lozenge_downstream.api.request_handling import RequestRefused, changing, is_dry
from lozenge_downstream.api.requests import By, CaseQuery, NewSilence, Replay
from lozenge_downstream.model import Classification
from lozenge_downstream.pipeline.pipeline import Pipeline
from lozenge_downstream.routing.warnings import PLATFORM
from lozenge_downstream.store import Store

BATCH, DAY = 500, 86_400.0
MAX_COUNTED = 1_000
"""Open cases that the answer to a new silence counts."""


class OperatorApi:
    """Answers them; `wake` signals that there is something to send."""

    def __init__(self, store: Store, pipeline: Pipeline, wake: Callable[[], None]) -> None:
        self._store, self._pipeline, self._wake = store, pipeline, wake

    def requests(self) -> Sequence[tuple[str, str, Callable[[Request, Any], Any]]]:
        """The method, path and handler of each."""
        return [
            ("GET", "/alerts/{id:path}", self._alert),
            ("GET", "/cases", self._cases),
            ("GET", "/cases/{id:path}", self._case),
            ("GET", "/silences", self._silences),
            ("POST", "/silences", self._silence),
            ("DELETE", "/silences/{id:path}", self._end_silence),
            ("GET", "/channels", self._channels),
            ("POST", "/channels/{name:path}/enable", self._enable),
            ("POST", "/channels/{name:path}/retry", self._retry),
            ("GET", "/rate-limits", self._rate_limits),
            ("POST", "/rate-limits/{detector:path}/{action}", self._decide_rate_limited),
            ("POST", "/replay", self._replay),
        ]

    def _alert(self, request: Request, _: Any) -> Any:
        id = request.path_params["id"]
        with self._store.reading() as t:
            if (found := t.alert_history.of(id)) is None:
                raise RequestRefused(
                    404, f"no alert {id!r} was received", "is its detector's alert topic read? see `lozenge peek`"
                )
            return found

    def _cases(self, request: Request, _: Any) -> Any:
        given = request.query_params
        every = {name: given.getlist(name) for name in given}
        once = {name: values if len(values) > 1 else values[0] for name, values in every.items()}
        asked = CaseQuery.model_validate(once | {"matcher": every.get("matcher", [])})
        with self._store.reading() as t:
            return t.case_queries.open(asked.matchers, asked.limit)

    def _case(self, request: Request, _: Any) -> Any:
        id = request.path_params["id"]
        with self._store.reading() as t:
            if (found := t.case_queries.of(id)) is None:
                raise RequestRefused(
                    404, f"there is no case {id!r}, or it has expired", "`lozenge cases ls` shows open ones"
                )
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
        named = [m for m in asked.matchers if m.label == "detector" and m.operator in ("=", "=~")]
        with changing(self._store, request) as t:
            known, labels = t.received_alerts.detectors(), PLATFORM.union(t.received_alerts.labels())
            unknown = [m.value for m in named if not any(m({"detector": name}) for name in known)]
            same = [s.id for s in t.silences.active() if set(s.matchers) == set(asked.matchers)]
            made = t.silences.add(asked.matchers, asked.author, asked.reason, t.now + asked.seconds)
            matching = t.case_queries.open(asked.matchers, MAX_COUNTED)
        return {
            "id": made.id,
            "ends_at": made.ends_at,
            "same": same,
            "unknown_detectors": unknown,
            "unknown_labels": sorted({m.label for m in asked.matchers} - labels),
            "matching_cases": len(matching),
        }

    def _end_silence(self, request: Request, _: Any) -> Any:
        id = request.path_params["id"]
        with changing(self._store, request) as t:
            if not t.silences.expire(id):
                raise RequestRefused(404, f"no silence {id!r} is active", "`lozenge silence ls` shows the active ones")
        return {"id": id}

    def _channels(self, _: Request, __: Any) -> Any:
        with self._store.reading() as t:
            counts, disabled = t.deliveries.counts(), t.deliveries.disabled()
            errors = {trouble.channel: trouble.error for trouble in t.deliveries.troubles(t.now - DAY, 1)}
        names = sorted({*self._pipeline.routing.channels, *(name for name, _ in counts)})
        states = ("due", "sent", "failed")
        return [
            {"channel": name}
            | {state: counts.get((name, state), 0) for state in states}
            | {"disabled": disabled.get(name), "last_error": errors.get(name)}
            for name in names
        ]

    def _enable(self, request: Request, _: Any) -> Any:
        name = request.path_params["name"]
        with changing(self._store, request) as t:
            if not t.deliveries.enable(name):
                raise RequestRefused(
                    404, f"channel {name!r} is not disabled", "`lozenge channels ls` shows the disabled ones"
                )
        self._wake()
        return {"channel": name}

    def _retry(self, request: Request, _: Any) -> Any:
        name = request.path_params["name"]
        with changing(self._store, request) as t:
            if not (count := t.deliveries.retry_failed(name)):
                raise RequestRefused(
                    404, f"channel {name!r} has no failed message", "`lozenge channels ls` counts them"
                )
        self._wake()
        return {"channel": name, "messages": count}

    def _rate_limits(self, _: Request, __: Any) -> Any:
        with self._store.reading() as t:
            return [
                {"detector": name, "rate_limited": count}
                for name, count in sorted(t.received_alerts.rate_limited().items())
            ]

    def _decide_rate_limited(self, request: Request, body: Any) -> Any:
        by, action = By.model_validate(body), request.path_params["action"]
        if action not in ("release", "drop"):
            raise RequestRefused(404, f"{action} is neither release nor drop")
        outcome = Classification.ACCEPTED if action == "release" else Classification.DROPPED
        detector, total = request.path_params["detector"], 0
        if is_dry(request):
            with self._store.reading() as t:
                return {"detector": detector, "alerts": t.received_alerts.rate_limited().get(detector, 0)}
        while True:
            with self._store.transaction(exclusive=True) as t:
                reason = f"rate-limited, then {'released' if action == 'release' else 'dropped'} by {by.author}"
                alerts = t.received_alerts.take_rate_limited(detector, outcome, reason, BATCH)
                if outcome is Classification.ACCEPTED:
                    self._pipeline.process(alerts, t)
            total += len(alerts)
            if len(alerts) < BATCH:
                self._wake()
                return {"detector": detector, "alerts": total}

    def _replay(self, request: Request, body: Any) -> Any:
        asked = Replay.model_validate(body)
        if asked.channel not in self._pipeline.routing.channels:
            known = ", ".join(self._pipeline.routing.channels) or "none"
            raise RequestRefused(404, f"there is no channel {asked.channel}, only {known}")
        with changing(
            self._store, request, exclusive=True
        ) as t:  # else the retention could delete some of it meanwhile
            count = t.deliveries.again(
                asked.channel, asked.first, asked.partition, self._pipeline.topics.notifications, rest=asked.rest
            )
        self._wake()
        return {"channel": asked.channel, "notifications": count}
