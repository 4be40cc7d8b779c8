"""Cases whose alerts wait for their group, notified by a notifier that is killed while it evaluates them."""

import signal
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from itertools import pairwise

import pytest

from tests.brokers import Broker, own_platform
from tests.integration.downstream.notifier_process import STATUSES, NotifierProcess
from tests.integration.downstream.notifying import ALL_CARDS, DEADLINE_SECONDS, NAMED, World, world_of
from tests.postgres import database, server

pytestmark = pytest.mark.integration

WAIT_SECONDS, INTERVAL_SECONDS, OVER_SECONDS = 0.3, 0.5, 1.5
CARDS = 3
FAR = 1000 * ALL_CARDS


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def world(broker: Broker, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("looks")
    with ExitStack() as stack:
        if request.param == "postgresql":
            store = database(stack.enter_context(server(folder / "postgres")), "notifier")
        else:
            store = f"sqlite:///{folder / 'store.db'}"
        platform = stack.enter_context(own_platform(broker))
        yield _gathering(stack.enter_context(world_of(platform, folder, store)))


def _gathering(world: World) -> World:
    routing = world.folder / "routing.toml"
    times = (
        f'group_by = ["entity"]\ngroup_wait = "{WAIT_SECONDS}s"\nsend_resolved = true\n'
        f'group_interval = "{INTERVAL_SECONDS}s"\nrepeat_interval = "{INTERVAL_SECONDS}s"\n'
        f'resolve_timeout = "{OVER_SECONDS}s"\n'
    )
    routing.write_text(routing.read_text().replace("[route]\n", f"[route]\n{times}"))
    return world


@pytest.mark.parametrize("what", STATUSES)
def test_a_notifier_killed_during_an_evaluation_loses_and_repeats_nothing(world: World, what: str) -> None:
    first = 2 * STATUSES.index(what) * FAR
    # New alerts come again before they may be notified; else a case is notified, repeated, resolved and opened again.
    pause = INTERVAL_SECONDS / 4 if what == "updated" else OVER_SECONDS * 1.5
    for number, when in enumerate(("before", "after")):
        killed = world.start(f"{what}, {when} the SQL commit", **NAMED)
        try:
            _send_until_it_dies(world, killed, first + number * FAR, pause)
        finally:
            killed.kill()
        assert killed.exit_code == -signal.SIGKILL, killed.errors
    with world.notifier():
        world.wait_for(lambda: _all_is_over(world), "the end of all cases")
    _check(world)


def _send_until_it_dies(world: World, killed: NotifierProcess, first: int, pause: float) -> None:
    deadline, send_at = time.monotonic() + DEADLINE_SECONDS, 0.0
    while killed.exit_code is None:
        assert time.monotonic() < deadline, "waited in vain for its death"
        if time.monotonic() >= send_at:
            world.send("one", range(first, first + CARDS))
            first, send_at = first + ALL_CARDS, time.monotonic() + pause
        time.sleep(0.05)


def _all_is_over(world: World) -> bool:
    said = world.notifications()
    notified = {alert_id for notification in said for alert_id in notification["alert_ids"]}
    by_status = Counter(notification["status"] for notification in said)
    return (
        notified == world.alert_ids
        and by_status["opened"] == by_status["resolved"]
        and world.receiver.count()["distinct"] >= len(said)
    )


def _check(world: World) -> None:
    world.check_seqs()
    said = world.notifications()
    cases = defaultdict(list)
    for notification in said:
        cases[notification["case_id"]].append(notification)
    for notifications in cases.values():
        opened, *between, resolved = (notification["status"] for notification in notifications)
        assert (opened, set(between) - {"updated"}, resolved) == ("opened", set(), "resolved")
        for one, next_ in pairwise(notifications[:-1]):  # what is notified twice is notified too early
            assert next_["created_at"] - one["created_at"] >= timedelta(seconds=INTERVAL_SECONDS)
    notified = Counter(alert_id for notification in said for alert_id in notification["alert_ids"])
    assert notified == Counter(world.alert_ids)
    ids = Counter(notification["notification_id"] for notification in said)
    heard = {message["data"]["notification_id"] for message in world.receiver.latest}
    assert ids == Counter(heard)
    count = world.receiver.count()
    assert (count["distinct"], count["invalid"]) == (len(ids), 0)
