"""Secrets by reference: named in the routing file, never written there; in no repr, log line, error or page.

They are read whenever they are used, so that one which changes within its file is used from then on.

Who only looks at a file, such as the checks of the repository that it is kept in, has none of them: with `ELSEWHERE` as
the context of validation a reference is checked for its form alone.
"""

import base64
import binascii
import os
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, SecretStr, ValidationInfo, model_validator

from lozenge.errors import Retryable

MIN_SECRET_BYTES = 24
SECRET_PREFIX = "whsec_"
ELSEWHERE = {"secrets": "elsewhere"}


class SecretUnusable(Retryable, ValueError):
    """A secret is not where it should be, or is none of its kind; names the place and never the content."""


class Secret(BaseModel):
    """Where a secret is: { env = "NAME" } or { file = "PATH" }. It must be there when the file is read for use."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    env: str | None = None
    file: Path | None = None

    @model_validator(mode="after")
    def _is_readable(self, info: ValidationInfo) -> Self:
        if (self.env is None) == (self.file is None):
            raise ValueError('say either { env = "NAME" } or { file = "PATH" }')
        if info.context != ELSEWHERE:
            self.resolve()
        return self

    @property
    def place(self) -> str:
        """Where it is, for a person."""
        return f"environment variable {self.env}" if self.env is not None else f"file {self.file}"

    def resolve(self) -> SecretStr:
        """The secret itself, as it is now; raises SecretUnusable."""
        if self.env is not None:
            value = os.environ.get(self.env)
            if value is None:
                raise SecretUnusable(f"{self.place} is not set")
        else:
            try:
                value = Path(self.file or "").read_text("utf-8").strip()
            except OSError as error:
                raise SecretUnusable(f"{self.place}: {error.strerror}") from None
            except UnicodeDecodeError:
                raise SecretUnusable(f"{self.place} holds no text") from None
        if not value:
            raise SecretUnusable(f"{self.place} is empty")
        return SecretStr(value)


class SigningSecret(Secret):
    """A secret that webhooks are signed with: base64 of 24 bytes or more."""

    def resolve(self) -> SecretStr:
        """As its base does; raises SecretUnusable also for what is no key."""
        found = super().resolve()
        value = found.get_secret_value().removeprefix(SECRET_PREFIX)
        try:
            key = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
        except (binascii.Error, ValueError):
            raise SecretUnusable(f"{self.place} does not hold a base64 secret ({SECRET_PREFIX}...)") from None
        if len(key) < MIN_SECRET_BYTES:
            least = f"a signing secret has at least {MIN_SECRET_BYTES}"
            raise SecretUnusable(f"{self.place} holds {len(key)} bytes, {least}")
        return found
