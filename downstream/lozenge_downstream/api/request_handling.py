"""How a request becomes an answer: who may ask, what its body may be, and what each error says."""

import hmac
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lozenge.errors import LozengeError
from lozenge_downstream.store import Store, Transaction

MAX_BODY = 256 * 1024


class Refused(Exception):
    """A request that cannot be answered as it is: HTTP `status`, what is wrong, and what to do."""

    def __init__(self, status: int, error: str, hint: str = "") -> None:
        super().__init__(error)
        self.status, self.error, self.hint = status, error, hint


class _TakenBack(Exception):
    """Ends a transaction of which nothing is to stay."""


def answering(what: Callable[[Request, Any], Any], token: str) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint that gives what `what` makes of a request and its JSON, in a thread, to who has the `token`."""

    async def answer(request: Request) -> Response:
        try:
            _let_in(request, token)
            if "\0" in request.url.path:
                raise Refused(422, "a NUL is in the path")
            body = await _json(request) if request.method == "POST" else None
            return JSONResponse(await run_in_threadpool(what, request, body))
        except Refused as no:
            return JSONResponse({"error": no.error, "hint": no.hint}, no.status)
        except ValidationError as error:
            return JSONResponse({"error": "; ".join(problems(error)), "hint": ""}, 422)
        except LozengeError as error:
            return JSONResponse({"error": error.message, "hint": error.hint}, 503)

    return answer


@contextmanager
def changing(store: Store, request: Request, *, alone: bool = False) -> Iterator[Transaction]:
    """A transaction, of which nothing stays in a dry run."""
    with suppress(_TakenBack), store.transaction(alone=alone) as t:
        yield t
        if is_dry(request):
            raise _TakenBack


def is_dry(request: Request) -> bool:
    """Whether a change is to be answered and not made."""
    return "dry_run" in request.query_params


async def body_of(request: Request) -> bytes:
    """All of the body, if it is no longer than any that is meant; raises Refused."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise Refused(413, f"the body is longer than {MAX_BODY // 1024} KiB")
    return bytes(body)


def problems(error: ValidationError) -> list[str]:
    """All that is wrong with what was asked."""
    return [f"{'.'.join(map(str, e['loc']))}: {e['msg'].removeprefix('Value error, ')}" for e in error.errors()]


def no_such_request(request: Request, error: Exception) -> Response:
    """For a path or a method that nobody answers."""
    assert isinstance(error, HTTPException)
    asked = f"{request.method} {request.url.path}"
    return JSONResponse({"error": f"{asked}: {error.detail}", "hint": ""}, error.status_code, error.headers)


def broken(_: Request, error: Exception) -> Response:
    """For a mistake of ours; the stack goes to the log."""
    hint = "its log says more; it is a mistake in the notifier"
    return JSONResponse({"error": f"the notifier failed at this: {type(error).__name__}", "hint": hint}, 500)


def _let_in(request: Request, token: str) -> None:
    given = request.headers.get("authorization", "").removeprefix("Bearer ")
    if token and not hmac.compare_digest(given.encode(), token.encode()):
        raise Refused(401, "the token does not fit", "set LOZENGE_NOTIFIER_TOKEN to the notifier's")


async def _json(request: Request) -> Any:
    """The body; what a page in somebody's browser may send elsewhere without asking is of another type, and refused."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "the body is not said to be JSON", "send it with content-type: application/json")
    body = await body_of(request)
    try:
        return json.loads(body)
    except (ValueError, RecursionError):  # the latter for what is nested too deep
        raise Refused(400, "the body is no JSON") from None
