"""A small webhook receiver for the demo and the tests: it verifies, counts, and keeps the latest messages.

    python -m lozenge_deploy.demo.webhook_receiver --port 0 --secret whsec_...

prints its URL. `POST /` takes a Standard Webhooks message: 204, or 401 if its signature is wrong.
`GET /count` answers `{received, distinct, repeats, invalid}`, `GET /latest` the last messages.
"""

import argparse
import socket
import threading
import time
from collections import deque
from types import TracebackType
from typing import Any, Self

import uvicorn
from standardwebhooks import Webhook, WebhookVerificationError
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

LOOPBACK = "127.0.0.1"
START_SECONDS = 10.0
LATEST = 100


class Receiver:
    """Counts messages by `webhook-id`; as a context manager it serves from its own thread."""

    def __init__(self, secret: str, *, port: int = 0, latest: int = LATEST) -> None:
        self._verifier = Webhook(secret)
        self._ids: set[str] = set()
        self._received = self._invalid = 0
        self.latest: deque[dict[str, Any]] = deque(maxlen=latest)
        self._socket = socket.create_server((LOOPBACK, port))
        routes = [
            Route("/", self.receive, methods=["POST"]),
            Route("/count", self._show_count),
            Route("/latest", self._show_latest),
        ]
        config = uvicorn.Config(Starlette(routes=routes), log_level="warning", access_log=False, lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self.serve, name="receiver", daemon=True)

    @property
    def url(self) -> str:
        """The URL of the receiver."""
        return f"http://{LOOPBACK}:{self._socket.getsockname()[1]}/"

    def count(self) -> dict[str, int]:
        """Messages with a valid signature (`received` = `distinct` + `repeats`), and those without (`invalid`)."""
        distinct = len(self._ids)
        return {
            "received": self._received,
            "distinct": distinct,
            "repeats": self._received - distinct,
            "invalid": self._invalid,
        }

    def serve(self) -> None:
        """Serves until SIGTERM, or until the context ends."""
        self._server.run(sockets=[self._socket])

    def __enter__(self) -> Self:
        self._thread.start()
        deadline = time.monotonic() + START_SECONDS
        while not self._server.started:
            if time.monotonic() > deadline or not self._thread.is_alive():
                raise TimeoutError(f"the webhook receiver did not start within {START_SECONDS:g} s")
            time.sleep(0.01)
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._server.should_exit = True
        self._thread.join(START_SECONDS)
        self._socket.close()

    async def receive(self, request: Request) -> Response:
        """Handles one message."""
        try:
            body = await request.body()
        except ClientDisconnect:  # its sender was killed, and sends it again
            return Response(status_code=400)
        try:
            message = self._verifier.verify(body, dict(request.headers))
        except (WebhookVerificationError, ValueError):
            self._invalid += 1
            return JSONResponse({"error": "invalid signature"}, status_code=401)
        self._received += 1
        self._ids.add(request.headers["webhook-id"])
        self.latest.append(message)
        return Response(status_code=204)

    async def _show_count(self, _: Request) -> Response:
        return JSONResponse(self.count())

    async def _show_latest(self, _: Request) -> Response:
        return JSONResponse(list(self.latest))


def main() -> None:
    """Serves until Ctrl-C or SIGTERM."""
    parser = argparse.ArgumentParser(description="A webhook receiver that verifies and counts.")
    parser.add_argument("--port", type=int, default=0, help="0 lets the system choose")
    parser.add_argument("--secret", required=True, help="the signing secret, whsec_...")
    arguments = parser.parse_args()
    receiver = Receiver(arguments.secret, port=arguments.port)
    print(receiver.url, flush=True)
    receiver.serve()


if __name__ == "__main__":
    main()
