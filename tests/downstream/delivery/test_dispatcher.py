"""Deliveries to real receivers on loopback, also to ones that misbehave."""

import asyncio
import socket
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lozenge.contracts.topics import Topics
from lozenge.metrics.app_metrics import NotifierMetrics
from lozenge_deploy.demo.webhook_receiver import Receiver
from lozenge_downstream.delivery.dispatcher import Dispatcher
from lozenge_downstream.model import Outgoing, ReceivedRecord
from lozenge_downstream.pipeline.pipeline import Pipeline
from lozenge_downstream.routing.config import Routing
from lozenge_downstream.store import Store
from tests.downstream.conftest import SECRET
from tests.downstream.delivery.conftest import hook
from tests.http_server import QuietHandler, serving
from tests.waiting import until

TOPICS = Topics()
MakeRecord = Callable[..., ReceivedRecord]
Answer = Callable[[BaseHTTPRequestHandler, int], None]
Hanging = Callable[[pytest.MonkeyPatch], AbstractContextManager[dict[str, Any]]]


def take(store: Store, record: MakeRecord, count: int, *channels: str, first: int = 0) -> None:
    """Makes `count` alerts, from number `first` on, due on each of `channels`."""
    pipeline = Pipeline(Routing.model_validate({"route": {"channels": channels}}), TOPICS)
    with store.transaction(exclusive=True) as t:
        pipeline.receive(pipeline.decode([record(n) for n in range(first, first + count)]), t)


@contextmanager
def delivering(store: Store, **channels: dict[str, Any]) -> Iterator[NotifierMetrics]:
    """Runs the dispatcher in a thread and raises what ended it; what it counts."""
    failures: list[BaseException] = []
    there = Routing.model_validate({"channels": channels}).channels
    metrics = NotifierMetrics("test")
    deliverer = Dispatcher(store, TOPICS, lambda: there, lambda lease: True, metrics)
    stop = threading.Event()

    def run() -> None:
        try:
            deliverer.run(stop)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield metrics
    finally:
        stop.set()
        deliverer.wake()
        thread.join(20)
    assert not thread.is_alive()
    assert not failures


@contextmanager
def misbehaving(answer: Answer) -> Iterator[tuple[str, dict[str, int]]]:
    """A receiver that calls `answer` with the number of times it saw this webhook-id before."""
    seen: dict[str, int] = defaultdict(int)

    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            before = seen[self.headers["webhook-id"]]
            seen[self.headers["webhook-id"]] += 1
            answer(self, before)

    with serving(Handler) as url:
        yield f"{url}/", seen


def reply(handler: BaseHTTPRequestHandler, status: int, **headers: str) -> None:
    handler.send_response(status)
    for name, value in ({"content_length": "0"} | headers).items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()


def waiting(store: Store) -> dict[str, int]:
    """How many deliveries wait, by channel."""
    with store.reading() as t:
        return t.deliveries.orphans([])


def all_sent(store: Store) -> bool:
    return not waiting(store)


def error(store: Store) -> str | None:
    """What went wrong with the last attempt of the one delivery that waits."""
    with store.reading() as t:
        (waits,) = t.deliveries.of([sent.id for sent in t.outbox.pending(10)][-1:])
        return None if waits["error"] is None else str(waits["error"])


def pending(store: Store) -> list[Outgoing]:
    with store.reading() as t:
        return t.outbox.pending(10)


def test_messages_are_signed_and_sent_once(store: Store, record: MakeRecord) -> None:
    take(store, record, 200, "ops")
    with Receiver(SECRET) as receiver, delivering(store, ops=hook(receiver.url)):
        until(lambda: all_sent(store))
        assert receiver.count() == {"received": 200, "distinct": 200, "repeats": 0, "invalid": 0}
        assert receiver.latest[0]["type"] == "lozenge.notification.opened"


def test_a_wrong_secret_is_refused_by_the_receiver(store: Store, record: MakeRecord) -> None:
    take(store, record, 1, "ops")
    with Receiver("whsec_" + "A" * 32) as receiver, delivering(store, ops=hook(receiver.url)):
        until(lambda: receiver.count()["invalid"] > 1)
        assert receiver.count()["received"] == 0


@pytest.mark.parametrize("status", [302, 500, 503])
def test_a_failed_attempt_comes_back_with_the_same_id(store: Store, record: MakeRecord, status: int) -> None:
    def answer(handler: BaseHTTPRequestHandler, before: int) -> None:
        reply(handler, 204 if before == 2 else status, location="http://127.0.0.1:1/")

    take(store, record, 5, "ops")
    with misbehaving(answer) as (url, seen), delivering(store, ops=hook(url)):
        until(lambda: all_sent(store))
    assert list(seen.values()) == [3] * 5


def test_retry_after_is_obeyed(store: Store, record: MakeRecord) -> None:
    times: list[float] = []

    def answer(handler: BaseHTTPRequestHandler, before: int) -> None:
        times.append(time.time())
        reply(handler, 204 if before else 429, retry_after="1")

    take(store, record, 1, "ops")
    with misbehaving(answer) as (url, _), delivering(store, ops=hook(url)):
        until(lambda: all_sent(store))
    assert times[1] - times[0] >= 1


def test_a_receiver_that_asks_for_a_wait_gets_no_other_message_meanwhile(store: Store, record: MakeRecord) -> None:
    """And what waits for another one goes out meanwhile."""
    asked = threading.Event()
    times: list[float] = []

    def answer(handler: BaseHTTPRequestHandler, _: int) -> None:
        times.append(time.monotonic())
        first = len(times) == 1
        reply(handler, 429 if first else 204, retry_after="1")
        asked.set()

    take(store, record, 20, "busy", "well")
    with (
        misbehaving(answer) as (url, seen),
        Receiver(SECRET) as receiver,
        delivering(store, busy=hook(url, concurrency=1), well=hook(receiver.url)),
    ):
        assert asked.wait(30)
        until(lambda: "well" not in waiting(store))
        take(store, record, 40, "busy")  # 20 more
        until(lambda: all_sent(store))
    assert sorted(seen.values()) == [1] * 39 + [2]
    assert times[1] - times[0] >= 1


def test_receivers_that_do_not_answer_slow_no_other_channel(store: Store, record: MakeRecord) -> None:
    released = threading.Event()

    def hang(handler: BaseHTTPRequestHandler, _: int) -> None:
        released.wait(60)

    with socket.create_server(("127.0.0.1", 0)) as unused:
        closed = f"http://127.0.0.1:{unused.getsockname()[1]}/"
    take(store, record, 100, "hangs", "closed", "well")
    hooks = {"hangs": {"timeout": 60}, "closed": {"attempts": 100}}
    with misbehaving(hang) as (url, seen), Receiver(SECRET) as receiver:
        with delivering(
            store, hangs=hook(url, **hooks["hangs"]), closed=hook(closed, **hooks["closed"]), well=hook(receiver.url)
        ):
            until(lambda: "well" not in waiting(store))
            assert waiting(store) == {"hangs": 100, "closed": 100}
            assert len(seen) <= 16
        released.set()


@contextmanager
def hanging_resolver(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """A name whose lookup hangs, as a webhook's."""
    released, lookup = threading.Event(), socket.getaddrinfo

    def hang(host: Any, *args: Any, **more: Any) -> Any:
        if host == "hangs.example":
            released.wait(60)
            raise OSError("nobody knows")
        return lookup(host, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    try:
        yield hook("http://hangs.example/", timeout=60)
    finally:
        released.set()


@contextmanager
def hanging_mail_server(_: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """A mail server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as server:
        addresses = {"from": "lozenge@example.com", "to": ["ops@example.com"]}
        there = {"host": "127.0.0.1", "port": server.getsockname()[1], "security": "none", **addresses}
        yield {"type": "email", "concurrency": 16, "timeout": 60, **there}


@pytest.mark.parametrize("hanging", [hanging_resolver, hanging_mail_server])
def test_lookups_and_mail_servers_that_hang_slow_no_other(
    store: Store, record: MakeRecord, monkeypatch: pytest.MonkeyPatch, hanging: Hanging
) -> None:
    """Many more than there are threads for all channels together."""
    names = [f"hangs-{number}" for number in range(6)]
    take(store, record, 16, *names, "well")
    with Receiver(SECRET) as receiver, hanging(monkeypatch) as hangs:
        channels = dict.fromkeys(names, hangs) | {"well": hook(receiver.url)}
        with delivering(store, **channels):
            until(lambda: "well" not in waiting(store))
            assert waiting(store) == dict.fromkeys(names, 16)


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # which apprise still imports
def test_a_service_of_apprise_that_hangs_slows_no_other_one(
    store: Store, record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()

    def hang(handler: BaseHTTPRequestHandler, _: int) -> None:
        released.wait(60)

    take(store, record, 40, "hangs", "well")
    with (
        misbehaving(hang) as (dead, _),
        misbehaving(lambda handler, _: reply(handler, 204)) as (alive, _),
    ):
        monkeypatch.setenv("HANGS", dead.replace("http://", "json://") + "?rto=60")
        monkeypatch.setenv("WELL", alive.replace("http://", "json://"))
        hangs = {"type": "apprise", "url": {"env": "HANGS"}, "concurrency": 40, "timeout": 60}
        with delivering(store, hangs=hangs, well={"type": "apprise", "url": {"env": "WELL"}}):
            until(lambda: "well" not in waiting(store))
            assert waiting(store) == {"hangs": 40}
        released.set()


def test_an_answer_that_hangs_or_drips_ends_at_the_timeout(store: Store, record: MakeRecord) -> None:
    def drip(handler: BaseHTTPRequestHandler, before: int) -> None:
        reply(handler, 200, content_length="100000")
        while not before:
            try:
                handler.wfile.write(b".")
            except OSError:
                return
            time.sleep(0.05)
        handler.wfile.write(b"." * 100_000)

    take(store, record, 1, "ops")
    with misbehaving(drip) as (url, seen), delivering(store, ops=hook(url, timeout=1)):
        until(lambda: all_sent(store))
    assert list(seen.values()) == [2]


def test_an_endless_answer_is_cut(store: Store, record: MakeRecord) -> None:
    written = 0

    def flood(handler: BaseHTTPRequestHandler, _: int) -> None:
        nonlocal written
        reply(handler, 200, content_length=str(10 * 2**30))
        try:
            while True:
                written += handler.wfile.write(b"." * 65536)
        except OSError:
            return

    take(store, record, 1, "ops")
    with misbehaving(flood) as (url, _), delivering(store, ops=hook(url)):
        until(lambda: all_sent(store))
    assert written < 100 * 2**20


def test_a_delivery_that_is_given_up_becomes_a_dead_letter(store: Store, record: MakeRecord) -> None:
    take(store, record, 1, "ops")
    (notification,) = pending(store)
    with (
        misbehaving(lambda handler, _: reply(handler, 500)) as (url, seen),
        delivering(store, ops=hook(url, attempts=2)),
    ):
        until(lambda: all_sent(store))
    assert list(seen.values()) == [2]
    (dead_letter,) = [o for o in pending(store) if o.topic == TOPICS.dead_letters("downstream")]
    assert (dead_letter.key, dead_letter.value) == (notification.key, notification.value)
    headers = dict(dead_letter.headers)
    assert headers["__connect.errors.stage"] == b"deliver"
    assert headers["__connect.errors.exception.message"] == b"channel ops: HTTP 500 (2 attempts)"
    assert headers["ce_id"] == notification.id.encode()


def test_attempts_are_counted_by_channel_and_end(store: Store, record: MakeRecord) -> None:
    def answer(handler: BaseHTTPRequestHandler, before: int) -> None:
        reply(handler, 204 if before else 500)

    take(store, record, 3, "ops", "gives-up")
    with misbehaving(answer) as (url, _), misbehaving(lambda handler, _: reply(handler, 500)) as (dead, _):
        channels = {"ops": hook(url), "gives-up": hook(dead, attempts=1), "unused": hook(url)}
        with delivering(store, **channels) as metrics:
            until(lambda: all_sent(store))
    samples = metrics.snapshot()["samples"]
    counted = {n: c for n, c in samples.items() if n.startswith("lozenge_deliveries_total")}
    ends = ("sent", "retried", "failed")
    expected = {"ops": (3, 3, 0), "gives-up": (0, 0, 3), "unused": (0, 0, 0)}
    assert counted == {
        f"lozenge_deliveries_total{{channel={channel},outcome={end}}}": count
        for channel, counts in expected.items()
        for end, count in zip(ends, counts, strict=True)
    }


def test_due_deliveries_survive_a_restart(store: Store, record: MakeRecord) -> None:
    take(store, record, 20, "ops")
    with misbehaving(lambda handler, _: reply(handler, 503)) as (url, seen), delivering(store, ops=hook(url)):
        until(lambda: len(seen) == 20)
    with Receiver(SECRET) as receiver, delivering(store, ops=hook(receiver.url)):
        until(lambda: all_sent(store))
        assert receiver.count()["distinct"] == 20


def test_a_receiver_that_is_gone_disables_its_channel_until_it_is_enabled(store: Store, record: MakeRecord) -> None:
    take(store, record, 40, "ops")
    with misbehaving(lambda handler, _: reply(handler, 410)) as (url, seen), delivering(store, ops=hook(url)):
        until(lambda: bool(_disabled(store)))
        asked = len(seen)
    assert asked <= 16
    assert waiting(store) == {"ops": 40}
    with Receiver(SECRET) as receiver, delivering(store, ops=hook(receiver.url)):
        time.sleep(0.5)
        assert receiver.count()["received"] == 0
        with store.transaction() as t:
            assert t.deliveries.enable("ops")
        until(lambda: all_sent(store))
        assert receiver.count()["distinct"] == 40


def test_both_secrets_sign_while_one_is_being_changed(
    store: Store, record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = "whsec_" + "B" * 32
    monkeypatch.setenv("NEW_SECRET", new)
    take(store, record, 3, "ops", "also")
    both = [{"env": "NEW_SECRET"}, {"env": "HOOK_SECRET"}]
    with (
        Receiver(SECRET) as old_receiver,
        Receiver(new) as new_receiver,
        delivering(store, ops=hook(old_receiver.url, secret=both), also=hook(new_receiver.url, secret=both)),
    ):
        until(lambda: all_sent(store))
        assert [r.count()["distinct"] for r in (old_receiver, new_receiver)] == [3, 3]
        assert [r.count()["invalid"] for r in (old_receiver, new_receiver)] == [0, 0]


@pytest.mark.parametrize("gives_up", [False, True])
def test_messages_of_a_case_arrive_in_the_order_of_their_notifications(
    store: Store, record: MakeRecord, gives_up: bool
) -> None:
    """The first is refused until all of another case has arrived, or for good."""
    notify_until_resolved(store, [record(0), record(1), record(2, entity={"type": "card", "id": "card-8"})])
    mine, other = statuses_by_case(store).values()
    opened = next(iter(mine))
    arrived: list[str] = []

    def answer(handler: BaseHTTPRequestHandler, before: int) -> None:
        id = str(handler.headers["webhook-id"])
        held = id == opened and (gives_up or not other.keys() <= {*arrived})
        if not held:
            arrived.append(id)
        reply(handler, 500 if held else 204)

    with misbehaving(answer) as (url, _), delivering(store, ops=hook(url, attempts=2 if gives_up else 100)):
        until(lambda: all_sent(store))
    assert [mine[id] for id in arrived if id in mine] == ["opened", "updated", "resolved"][gives_up:]
    assert len(arrived) == len(mine) + len(other) - gives_up


def notify_until_resolved(store: Store, records: Sequence[ReceivedRecord]) -> None:
    """Receives one alert after the other, and notifies of their cases until all are resolved."""
    cases = {"group_by": ["entity"], "group_interval": "0.1s", "resolve_timeout": "1s", "send_resolved": True}
    pipeline = Pipeline(Routing.model_validate({"route": {"channels": ["ops"], **cases}}), TOPICS)
    for one in records:
        with store.transaction(exclusive=True) as t:
            pipeline.receive(pipeline.decode([one]), t)

    def all_resolved() -> bool:
        with store.transaction(exclusive=True) as t:
            pipeline.evaluate_due(t, 100)
        return all(list(case.values())[-1] == "resolved" for case in statuses_by_case(store).values())

    until(all_resolved)


def statuses_by_case(store: Store) -> dict[str, dict[str, str]]:
    """The notifications of each case and their statuses, in order."""
    cases: dict[str, dict[str, str]] = {}
    for sent in pending(store):
        cases.setdefault(str(sent.case_id), {})[sent.id] = msgspec.json.decode(sent.body or "")["data"]["status"]
    return cases


def test_a_secret_that_changes_within_its_file_signs_from_then_on(
    store: Store, record: MakeRecord, tmp_path: Path
) -> None:
    """Without it nothing is sent, and the error says what is missing."""
    file = tmp_path / "secret"
    file.write_text(SECRET)
    with (
        Receiver(SECRET) as receiver,
        delivering(store, ops=hook(receiver.url, secret={"file": str(file)}, attempts=100)),
    ):
        take(store, record, 1, "ops")
        until(lambda: all_sent(store))
        file.unlink()
        take(store, record, 1, "ops", first=1)
        until(lambda: error(store) == f"file {file}: No such file or directory")
        file.write_text("no base64!")
        until(lambda: error(store) == f"file {file} does not hold a base64 secret (whsec_...)")
        file.write_text("whsec_" + "B" * 32)
        until(lambda: receiver.count()["invalid"] > 0)
        file.write_text(SECRET)
        until(lambda: all_sent(store))
        assert receiver.count()["distinct"] == 2


def test_a_channel_whose_lease_another_notifier_holds_is_left_to_it(store: Store, record: MakeRecord) -> None:
    take(store, record, 1, "ops")
    there = Routing.model_validate({"channels": {"ops": hook("http://127.0.0.1:1/")}}).channels
    stop = threading.Event()
    thread = threading.Thread(
        target=Dispatcher(store, TOPICS, lambda: there, lambda _: False, NotifierMetrics("test")).run, args=[stop]
    )
    thread.start()
    time.sleep(1)
    stop.set()
    thread.join(20)
    with store.reading() as t:
        assert t.deliveries.due("ops", 10)[0].attempts == 0


def test_messages_of_a_channel_that_cannot_be_opened_say_so_and_are_retried(
    store: Store, record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    monkeypatch.setenv("APPRISE", "json://127.0.0.1:1/")
    take(store, record, 1, "chat")
    with delivering(store, chat={"type": "apprise", "url": {"env": "APPRISE"}, "first_retry": 0.1, "max_retry": 0.2}):
        until(lambda: error(store) == "the channel cannot be opened: the package apprise is not installed")
    with store.reading() as t:
        (trouble,) = t.deliveries.troubles(0.0, 1)
    assert (trouble.channel, trouble.kind) == ("chat", "retrying")


def test_a_wake_while_the_dispatcher_ends_is_dropped(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    there = Routing.model_validate({"channels": {"ops": hook("http://127.0.0.1:1/")}}).channels
    stop, works = threading.Event(), threading.Event()

    def holds(_: str) -> bool:
        works.set()
        return False

    dispatcher = Dispatcher(store, TOPICS, lambda: there, holds, NotifierMetrics("test"))
    thread = threading.Thread(target=dispatcher.run, args=[stop])
    thread.start()
    assert works.wait(20)
    call_soon = asyncio.BaseEventLoop.call_soon_threadsafe

    def late(loop: asyncio.BaseEventLoop, *call: Any, **context: Any) -> asyncio.Handle:
        if threading.current_thread() is threading.main_thread():
            stop.set()
            thread.join(2)  # the loop of the dispatcher ends here if nothing keeps it
        return call_soon(loop, *call, **context)

    monkeypatch.setattr(asyncio.BaseEventLoop, "call_soon_threadsafe", late)
    dispatcher.wake()
    thread.join(20)
    dispatcher.wake()
    assert not thread.is_alive()


def _disabled(store: Store) -> dict[str, str]:
    with store.reading() as t:
        return t.deliveries.disabled()
