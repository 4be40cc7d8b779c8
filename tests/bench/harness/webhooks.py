"""The measuring receiver of webhooks: it notes when each message was there as a whole, and answers at once."""

import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized

from starlette.requests import Request
from starlette.responses import Response

from lozenge_deploy.demo.webhook_receiver import Receiver
from tests.bench.harness.consumer import Arrival, Recorder
from tests.bench.harness.system import WEBHOOK_SECRET


class Webhooks(Recorder):
    """Takes messages at `url`."""

    def __init__(self) -> None:
        super().__init__(_serve)

    @property
    def url(self) -> str:
        """Where webhooks go."""
        return str(self.readiness)


class Noting(Receiver):
    """Verifies nothing: that would take processor time from the system that is measured."""

    def __init__(self, count: "Synchronized[int]") -> None:
        super().__init__(WEBHOOK_SECRET)
        self._arrivals: list[Arrival] = []
        self._count = count

    async def receive(self, request: Request) -> Response:
        body = await request.body()
        self._arrivals.append(Arrival(time.time_ns(), 0, body))
        self._count.value = len(self._arrivals)
        return Response(status_code=204)

    def take(self) -> list[Arrival]:
        taken = self._arrivals[:]
        del self._arrivals[: len(taken)]
        self._count.value = len(self._arrivals)
        return taken


def serve(receiver: Receiver, orders: Connection, take: Callable[[], object]) -> None:
    """The process of a receiver: sends its URL, then what `take` gives for each order, until the other side closes."""
    with receiver:
        orders.send(receiver.url)
        while True:
            try:
                orders.recv()
            except EOFError:
                return
            orders.send(take())


def _serve(orders: Connection, count: "Synchronized[int]") -> None:
    receiver = Noting(count)
    serve(receiver, orders, receiver.take)
