"""The measuring receiver of webhooks: it notes when each message was there as a whole, and answers at once."""

import socket
import threading
import time
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.bench.harness.consumer import Arrival, Receiver

LOOPBACK = "127.0.0.1"


class Webhooks(Receiver):
    """Takes messages at `url`."""

    def __init__(self) -> None:
        self._socket = socket.create_server((LOOPBACK, 0))
        self.url = f"http://{LOOPBACK}:{self._socket.getsockname()[1]}/"
        super().__init__(_serve, self._socket)

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._socket.close()


def _serve(listening: socket.socket, orders: Connection, count: "Synchronized[int]") -> None:
    arrivals: list[Arrival] = []

    async def receive(request: Request) -> Response:
        body = await request.body()
        arrivals.append(Arrival(time.time_ns(), 0, body))
        count.value = len(arrivals)
        return Response(status_code=204)

    app = Starlette(routes=[Route("/", receive, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off"))
    threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    orders.send(None)
    while True:
        try:
            orders.recv()
        except EOFError:
            return
        taken = len(arrivals)
        orders.send(arrivals[:taken])
        del arrivals[:taken]
        count.value = len(arrivals)
