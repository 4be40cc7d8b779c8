"""A TCP proxy that treats its connections badly, in the seven ways that Toxiproxy does.

Latency, bandwidth, slices, late closes and silence hold for as long as they are `given`; a reset, a half close and a
limit of bytes befall the connections that are open. Without any of it bytes pass as they come.
"""

import asyncio
import random
import socket
import struct
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

LOOPBACK = "127.0.0.1"
CHUNK = 64 * 1024
LOOK_SECONDS = 0.05
START_SECONDS = 10.0
_RESET = struct.pack("ii", 1, 0)
_Line = asyncio.Queue[tuple[float, bytes]]


@dataclass(frozen=True)
class Toxic:
    """What happens to bytes on their way, in both directions; the default is nothing.

    A chunk is held for `latency` give or take `jitter` seconds, passes at `bandwidth` bytes a second, in slices of
    `slice_bytes`; a close is passed on after `slow_close` seconds; `silence` lets nothing pass, connections stay open;
    `limit` bytes more end a connection.
    """

    latency: float = 0.0
    jitter: float = 0.0
    bandwidth: int = 0
    slice_bytes: int = 0
    slow_close: float = 0.0
    silence: bool = False
    limit: int = 0


HEALTHY = Toxic()


class Proxy:
    """Listens on `port` of loopback (0: any) for the server at `target` ("host:port"), from a thread of its own."""

    def __init__(self, target: str, port: int = 0) -> None:
        self._host, _, number = target.rpartition(":")
        self._target_port = int(number)
        self._socket = socket.create_server((LOOPBACK, port))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._toxic = HEALTHY
        self._writers: set[asyncio.StreamWriter] = set()
        self._connections: set[asyncio.Task[Any] | None] = set()

    @property
    def port(self) -> int:
        """Where clients connect."""
        port: int = self._socket.getsockname()[1]
        return port

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._serve, sock=self._socket))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @contextmanager
    def given(self, toxic: Toxic) -> Iterator[None]:
        """Every connection suffers from `toxic` for the length of the block."""
        self._toxic = toxic
        try:
            yield
        finally:
            self._toxic = HEALTHY

    def reset(self) -> None:
        """Ends every connection by RST, as a machine does that knows nothing of it."""
        self._run(self._each(_reset))

    def half_close(self) -> None:
        """Closes every connection in the direction of the server, whose words still come; who speaks on is reset."""
        self._run(self._each(asyncio.StreamWriter.write_eof, servers=True))

    def _run(self, what: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(START_SECONDS)

    async def _each(self, do: Callable[[asyncio.StreamWriter], None], *, servers: bool = False) -> None:
        for writer in list(self._writers):
            peer = writer.get_extra_info("peername")
            if not writer.is_closing() and (not servers or (peer and peer[1] == self._target_port)):
                do(writer)

    async def _end(self) -> None:
        self._server.close()
        connections = [task for task in self._connections if task is not None]
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: both directions until both have ended, or one of them in error."""
        self._connections.add(connection := asyncio.current_task())
        both = {writer}
        try:
            there, to_server = await asyncio.open_connection(self._host, self._target_port)
            both.add(to_server)
            self._writers |= both
            async with asyncio.TaskGroup() as ways:
                ways.create_task(self._way(reader, to_server))
                ways.create_task(self._way(there, writer))
        # the server is away, or either end; or one speaks on after its half close
        except* (OSError, RuntimeError, asyncio.CancelledError):
            for each in both:
                _reset(each)
        finally:
            for each in both:
                each.close()
            self._writers -= both
            self._connections.discard(connection)

    async def _way(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One direction. Chunks wait in line for their time, so that a latency costs no bandwidth."""
        line = _Line(maxsize=64)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._read(reader, line))
            tasks.create_task(self._pass_on(line, writer))

    async def _read(self, reader: asyncio.StreamReader, line: _Line) -> None:
        while chunk := await reader.read(CHUNK):
            await line.put((self._loop.time() + self._delay(), chunk))
        await asyncio.sleep(self._toxic.slow_close)
        await line.put((0.0, b""))

    async def _pass_on(self, line: _Line, writer: asyncio.StreamWriter) -> None:
        passed = 0
        while True:
            due, chunk = await line.get()
            await asyncio.sleep(max(0.0, due - self._loop.time()))
            while self._toxic.silence:
                await asyncio.sleep(LOOK_SECONDS)
            if not chunk:
                return writer.write_eof()
            toxic = self._toxic
            passed = passed + len(chunk) if toxic.limit else 0
            if passed > toxic.limit > 0:
                raise ConnectionAbortedError("it has passed its limit of bytes")
            size = toxic.slice_bytes or len(chunk)
            for slice_ in (chunk[at : at + size] for at in range(0, len(chunk), size)):
                if toxic.bandwidth:
                    await asyncio.sleep(len(slice_) / toxic.bandwidth)
                writer.write(slice_)
                await writer.drain()

    def _delay(self) -> float:
        toxic = self._toxic
        return max(0.0, toxic.latency + random.uniform(-toxic.jitter, toxic.jitter))


def _reset(writer: asyncio.StreamWriter) -> None:
    if (raw := writer.get_extra_info("socket")) is not None and raw.fileno() >= 0:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
