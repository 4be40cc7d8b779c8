"""The notifier's HTTP API, and its own program for the routing file: a stage is called, never imported."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import httpx2
from pydantic import AfterValidator, SecretStr
from pydantic_settings import SettingsConfigDict

from lozenge.errors import LozengeError, Retryable, UsageError
from lozenge.process.env_settings import FromEnvironment, sendable

TIMEOUT_SECONDS, LABELS_SECONDS = 30.0, 2.0
_NOT_FOUND, _INVALID = 404, 422


class NotifierUnavailable(Retryable):
    """No notifier answers at the configured address."""

    exit_code = 3


class NotifierClientSettings(FromEnvironment):
    """The notifier that the command asks."""

    model_config = SettingsConfigDict(env_prefix="LOZENGE_NOTIFIER_")

    url: str = "http://127.0.0.1:8470"
    """The address of its API."""

    token: Annotated[SecretStr, AfterValidator(sendable)] | None = None
    """The bearer token of its API."""


def ask(
    method: str,
    path: str,
    body: Mapping[str, Any] | None = None,
    *,
    dry_run: bool = False,
    timeout: float = TIMEOUT_SECONDS,
) -> Any:
    """The notifier's answer; a dry run changes nothing.

    Raises UsageError or LozengeError with the notifier's error, or NotifierUnavailable.
    """
    settings = NotifierClientSettings.load()
    doing = f"asking the notifier at {settings.url}"
    headers = {"authorization": f"Bearer {settings.token.get_secret_value()}"} if settings.token else {}
    try:
        answer = httpx2.request(
            method,
            settings.url.rstrip("/") + path + ("?dry_run" if dry_run else ""),
            json=body,
            headers=headers,
            timeout=timeout,
            trust_env=False,
        )
        body_of_answer = answer.json()
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise NotifierUnavailable(
            f"{doing}: {error}", hint="does it run with LOZENGE_DOWNSTREAM_BIND? LOZENGE_NOTIFIER_URL says where"
        ) from error
    except ValueError as error:
        raise NotifierUnavailable(f"{doing}: it is not a notifier", hint="set LOZENGE_NOTIFIER_URL") from error
    if answer.is_success:
        return body_of_answer
    match body_of_answer:
        case {"error": str(said), "hint": str(hint)}:
            kind = UsageError if answer.status_code in (_NOT_FOUND, _INVALID) else LozengeError
            raise kind(said, hint=hint)
    raise NotifierUnavailable(
        f"{doing}: HTTP {answer.status_code}, and it is not a notifier", hint="set LOZENGE_NOTIFIER_URL"
    )


def known_labels() -> list[str]:
    """The labels that alerts have, as the notifier knows them; none if it does not answer at once."""
    try:
        return [str(name) for name in ask("GET", "/labels", timeout=LABELS_SECONDS)["labels"]]
    except LozengeError:
        return []


def in_path(text: str) -> str:
    """One part of a path, quoted; dots too, which would mean the parent folder."""
    return quote(text, safe="").replace(".", "%2E")


def routing(*arguments: str | Path) -> tuple[int, Any]:
    """The exit code and the JSON of `python -m lozenge_downstream.routing`; raises UsageError if it has none."""
    # -P, or Python would import modules of the current folder
    command = [sys.executable, "-P", "-m", "lozenge_downstream.routing", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError:
        message, _, hint = done.stderr.strip().partition("\n  -> ")
        raise UsageError(message or "the routing program printed nothing", hint=hint) from None
