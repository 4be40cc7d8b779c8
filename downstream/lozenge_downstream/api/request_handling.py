"""From a request to a response: authorisation, the body, and the form of each error."""

import hmac
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from lozenge import validation
from lozenge.contracts.display_text import shown, shown_data
from lozenge.errors import LozengeError
from lozenge_downstream.store import Store, Transaction

MAX_BODY, MAX_SHOWN = 256 * 1024, 100


class RequestRefused(Exception):
    """A request that is refused: HTTP `status`, the error, and what to do."""

    def __init__(self, status: int, error: str, hint: str = "") -> None:
        super().__init__(error)
        self.status, self.error, self.hint = status, error, hint


class _RolledBack(Exception):
    """Rolls a dry run back."""


def endpoint(handle: Callable[[Request, Any], Any], token: str) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint for clients with the `token`. It calls `handle` with the request and its JSON, in a thread."""

    async def answer(request: Request) -> Response:
        try:
            _let_in(request, token)
            if "\0" in request.url.path:
                raise RequestRefused(422, "the path contains a NUL")
            body = await _json(request) if request.method == "POST" else None
            return _json_response(await run_in_threadpool(handle, request, body))
        except RequestRefused as no:
            return _json_response({"error": no.error, "hint": no.hint}, no.status)
        except ValidationError as error:
            return _json_response({"error": "; ".join(validation.sentences(error)), "hint": ""}, 422)
        except LozengeError as error:
            return _json_response({"error": error.message, "hint": error.hint}, 503)

    return answer


@contextmanager
def changing(store: Store, request: Request, *, exclusive: bool = False) -> Iterator[Transaction]:
    """A transaction, which is rolled back in a dry run."""
    with suppress(_RolledBack), store.transaction(exclusive=exclusive) as t:
        yield t
        if is_dry(request):
            raise _RolledBack


def is_dry(request: Request) -> bool:
    """Whether a change must be answered and not made."""
    return "dry_run" in request.query_params


async def body_of(request: Request) -> bytes:
    """The whole body; raises RequestRefused if it is too long, or if the client left before its end."""
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY:
                raise RequestRefused(413, f"the body is longer than {MAX_BODY // 1024} KiB")
    except ClientDisconnect as error:
        raise RequestRefused(400, "the connection ended before the body") from error
    return bytes(body)


def no_such_request(request: Request, error: Exception) -> Response:
    """The response to an unknown path or method."""
    assert isinstance(error, HTTPException)
    asked = shown(f"{request.method} {request.url.path}")
    return JSONResponse({"error": f"{asked}: {error.detail}", "hint": ""}, error.status_code, error.headers)


def broken(_: Request, error: Exception) -> Response:
    """The response to an unexpected error; the log has its stack."""
    hint = "this is an error in the notifier; its log has the stack"
    return JSONResponse({"error": f"the notifier failed: {type(error).__name__}", "hint": hint}, 500)


def _json_response(content: Any, status: int = 200) -> Response:
    """The answer without card numbers and secrets, which alerts, notes and errors may quote."""
    return JSONResponse(shown_data(content), status)


def _let_in(request: Request, token: str) -> None:
    given = request.headers.get("authorization", "").removeprefix("Bearer ")
    if token and not hmac.compare_digest(given.encode(), token.encode()):
        raise RequestRefused(401, "the token is wrong", "set LOZENGE_NOTIFIER_TOKEN to the notifier's")


async def _json(request: Request) -> Any:
    """The body. Another content type is refused: a browser sends some of them for any page, without asking."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise RequestRefused(415, "the content type is not JSON", "send it with content-type: application/json")
    body = await body_of(request)
    try:
        given = json.loads(body, object_pairs_hook=_object, parse_constant=_no_number)
        json.dumps(given, ensure_ascii=False).encode()  # a lone surrogate is in no text that can be stored
    except (ValueError, RecursionError) as error:  # the latter for a body that is nested too deeply
        said = str(error) if isinstance(error, _Wrong) else "the body is not JSON"
        raise RequestRefused(400, said) from None
    return given


class _Wrong(ValueError):
    """JSON that Python reads and that has no one meaning; its text is for the client."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        repeated = sorted({name for name, _ in pairs if [n for n, _ in pairs].count(name) > 1})
        raise _Wrong(f"the body has a name twice: {', '.join(repeated)[:MAX_SHOWN]!r}")
    return found


def _no_number(text: str) -> None:
    raise _Wrong(f"the body has {text}, which is no JSON number")
