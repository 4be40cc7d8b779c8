"""The caches that a project declares: entries of a subject, once a cache has what its topic had."""

from collections.abc import Iterator
from contextlib import closing

from lozenge.cache.cached_topic import cached_topic
from lozenge.cache.stores import store_of
from lozenge.errors import LozengeError
from lozenge.kafka.topic_admin import partitions, topic_id
from lozenge.kafka.topic_reader import bounds
from lozenge.sink_declarations.cache_sink import CacheSink
from lozenge.sink_declarations.project import sinks_in
from lozenge_deploy.operations.erasure.plan import Plan
from lozenge_deploy.operations.erasure.receipt import Line, Outcome, found, not_done


def erase_caches(plan: Plan) -> Iterator[Line]:
    """A line for each cache. One that has not come to the present end of its topic has another one."""
    for sink in sinks_in(plan.project):
        if isinstance(sink, CacheSink):
            try:
                yield from _erase(plan, sink)
            except LozengeError as error:
                yield not_done(f"cache {sink.name}", error)


def _erase(plan: Plan, sink: CacheSink) -> Iterator[Line]:
    topic = cached_topic(sink, plan.kafka, {each.name: each for each in plan.streams.definitions}).name
    place, existing = f"cache {sink.name}", partitions(plan.kafka)
    ends, id = dict[int, int](), ""
    if topic in existing:
        ends = {p: end for p, (_, end) in bounds(plan.kafka, topic, existing[topic]).items()}
        id = topic_id(plan.kafka, topic)
    with closing(store_of(sink)) as store:

        def behind() -> int:
            stored = store.positions()
            at = {p: position.offset for p, position in stored.items() if position.topic_id == id}
            return sum(max(0, end - at.get(p, 0)) for p, end in ends.items())

        left = plan.reaches(behind, f"{sink.name} to have what its topic has")
        entries = store.erase(plan.subject, dry_run=plan.dry_run)
    yield found(place, entries, "entries, with their keys", dry_run=plan.dry_run)
    if left:
        what = f"{left} records of its topic are not cached yet: run this again once {sink.app} has caught up"
        yield Line(place, Outcome.NOT_DONE, what=what)
