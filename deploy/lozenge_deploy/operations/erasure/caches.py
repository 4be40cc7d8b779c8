"""The caches of a platform: entries of a subject, once a cache has what its topic had."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing

from lozenge.apps import is_sink
from lozenge.cache.cached_topic import cached_topic
from lozenge.cache.stores import store_of
from lozenge.errors import LozengeError
from lozenge.kafka.topic_admin import partitions, topic_id
from lozenge.kafka.topic_reader import bounds
from lozenge.protocol.app_requests import AppState
from lozenge.sink_declarations.cache_sink import CacheSink
from lozenge.sink_declarations.project import Sink, sinks_in
from lozenge_deploy.operations.declarations.apps import requests_of_apps
from lozenge_deploy.operations.declarations.sinks import last_of
from lozenge_deploy.operations.erasure.plan import Plan
from lozenge_deploy.operations.erasure.receipt import Line, Outcome, found, not_done


def erase_caches(plan: Plan) -> Iterator[Line]:
    """A line for each cache. One that has not come to the present end of its topic has another one."""
    states = requests_of_apps(plan.kafka).states()
    for sink in known_sinks(states, sinks_in(plan.project)):
        if isinstance(sink, CacheSink):
            state = states.get(sink.app)
            try:
                yield from _erase(plan, sink, retired=state is not None and state.request is None)
            except LozengeError as error:
                yield not_done(f"cache {sink.name}", error)


def known_sinks(states: Mapping[str, AppState], declared: Iterable[Sink]) -> list[Sink]:
    """Each sink by its last release, retired ones too; by its folder if it has none: it may have run without."""
    released = (sink for app, state in states.items() if is_sink(app) and (sink := last_of(state)) is not None)
    return [*({sink.name: sink for sink in declared} | {sink.name: sink for sink in released}).values()]


def _erase(plan: Plan, sink: CacheSink, *, retired: bool) -> Iterator[Line]:
    topic = cached_topic(sink, plan.kafka, {each.name: each for each in plan.streams.definitions}).name
    place, existing = f"cache {sink.name}", partitions(plan.kafka)
    ends, id = dict[int, int](), ""
    if topic in existing:
        ends = {p: end for p, (_, end) in bounds(plan.kafka, topic, existing[topic]).items()}
        id = topic_id(plan.kafka, topic)
    with closing(store_of(sink)) as store:

        def behind() -> int:
            if retired:  # it takes no records any more
                return 0
            stored = store.positions()
            at = {p: position.offset for p, position in stored.items() if position.topic_id == id}
            return sum(max(0, end - at.get(p, 0)) for p, end in ends.items())

        left = plan.reaches(behind, f"{sink.name} to have what its topic has")
        entries = store.erase(plan.subject, dry_run=plan.dry_run)
    yield found(place, entries, "entries, with their keys", dry_run=plan.dry_run)
    if left:
        what = f"{left} records of its topic are not cached yet: run this again once {sink.app} has caught up"
        yield Line(place, Outcome.NOT_DONE, what=what)
