"""The same 10,000 alerts, silences, inhibitions and windows through a real Alertmanager and through our stages.

`make bench-pytest ARGS="-k alertmanager"`, with Debian's package `prometheus-alertmanager` installed; seven to nine
minutes, most of them Alertmanager's own timers. Compared are all notifications: new alerts, repeats and ends, group by
group and by time. Prints what is the same, and each class of difference with its count; fails on one of no class.
"""

import time
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest

from lozenge_downstream.routing.matchers import parse
from tests.bench.oracle.alertmanager import PROGRAM, alertmanager, make, raise_alerts, receiving, through_alertmanager
from tests.bench.oracle.classes import Why
from tests.bench.oracle.compare import Comparison
from tests.bench.oracle.facts import Facts
from tests.bench.oracle.notifications import There
from tests.bench.oracle.ours import records, routes_of, through_ours
from tests.bench.oracle.routes import ours, theirs
from tests.bench.oracle.script import GROUP_WAIT, START_SECOND, Silence, alerts
from tests.downstream.conftest import Desk

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="the package prometheus-alertmanager is not installed")
AHEAD_SECONDS = 5


def next_start() -> float:
    """The next moment at which the script may begin."""
    earliest = time.time() + AHEAD_SECONDS
    return earliest - (earliest - START_SECOND) % 60 + 60


def test_alertmanager_and_ours_notify_alike_and_every_difference_is_of_a_known_class(tmp_path: Path) -> None:
    start = float(int(next_start()))
    there, receivers = through_alertmanager(tmp_path, start)
    here = through_ours(tmp_path, start)
    groups = routes_of(start)
    found = Comparison(Facts(groups, ours(start).inhibit_rules), there, here)

    print(f"\n{len(receivers):,} alerts, {found.groups:,} groups, {len(there):,} messages there and {len(here):,} here")
    print("the same:")
    for same, number in found.same.items():
        print(f"  {number:6,} {same}")
    print("different:")
    for why in Why:
        print(f"  {found.differences[why]:6,} {why}")
    for what in found.unexplained[:20]:
        print(f"  unexplained: {what}")
    assert receivers == {alert.id: {group.receiver for group in groups[alert.id]} for alert in alerts()}
    assert not found.unexplained, f"{len(found.unexplained)} differences are of no class"


def test_what_waits_outlives_a_kill_here_and_not_there(tmp_path: Path) -> None:
    silence = Silence(("detector = d0",))
    start = datetime.now(UTC).timestamp()
    messages: list[There] = []
    with receiving(messages, start) as url:
        (tmp_path / "alertmanager.yml").write_text(theirs(start, url))
        with alertmanager(tmp_path) as api, httpx2.Client(base_url=api) as client:
            make(client, silence, start)
            raise_alerts(client, [alert for alert in alerts() if alert.at == 0])
        with alertmanager(tmp_path) as api:
            silences_there = httpx2.get(f"{api}/silences").raise_for_status().json()
            time.sleep(GROUP_WAIT + AHEAD_SECONDS)

    before = Desk(f"sqlite:///{tmp_path / 'store.db'}")
    before.pipeline.routing = ours(start)
    before.now = start
    with before.store.transaction() as t:
        t.silences.add([parse(m) for m in silence.matchers], "oracle", "compared", start + silence.ends)
    before.take(*records(0, start))
    after = Desk(f"sqlite:///{tmp_path / 'store.db'}")
    after.pipeline.routing = ours(start)
    after.now = start
    after.later(GROUP_WAIT)
    here = {id for n in after.notifications() for id in n["alert_ids"]}
    with after.store.reading() as t:
        silences_here = t.silences.active()
    print(f"\nafter a kill: {len(messages)} messages and {len(silences_there)} silences there, "
          f"{len(here):,} alerts and {len(silences_here)} here")  # fmt: skip
    assert (messages, silences_there) == ([], [])
    assert here
    assert len(silences_here) == 1
