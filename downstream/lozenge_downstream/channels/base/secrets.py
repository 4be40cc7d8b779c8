"""Secrets by reference: the routing file names them and never has them. No repr, log line, error or page has one.

A check of the file, such as in its repository, has no secrets: with `ELSEWHERE` as the context of validation, only the
form of a reference is checked.
"""

import base64
import binascii
import os
import unicodedata
from pathlib import Path
from typing import Self

from pydantic import (
    BaseModel,
    ConfigDict,
    HttpUrl,
    SecretStr,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from lozenge.errors import Retryable
from lozenge.process.text_files import trimmed

MIN_SECRET_BYTES = 24
SECRET_PREFIX = "whsec_"
ELSEWHERE = {"secrets": "elsewhere"}
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories that no receiver takes in a secret: control and format characters, and bytes that are no text."""
_URL = TypeAdapter(HttpUrl)


class SecretUnusable(Retryable, ValueError):
    """A secret is missing or invalid. The error names its location and never its content."""


class Secret(BaseModel):
    """The location of a secret: { env = "NAME" } or { file = "PATH" }. The notifier requires it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    env: str | None = None
    file: Path | None = None

    @model_validator(mode="after")
    def _is_readable(self, info: ValidationInfo) -> Self:
        if (self.env is None) == (self.file is None):
            raise ValueError('set either { env = "NAME" } or { file = "PATH" }')
        if info.context != ELSEWHERE:
            self.resolve()
        return self

    @property
    def location(self) -> str:
        """Its location, for a person."""
        return f"environment variable {self.env}" if self.env is not None else f"file {self.file}"

    def resolve(self) -> SecretStr:
        """The current secret; raises SecretUnusable."""
        # no cache: reading a file takes 30 µs, and a changed content may keep its modification time
        if self.env is not None:
            value = os.environ.get(self.env)
            if value is None:
                raise SecretUnusable(f"{self.location} is not set")
        else:
            try:
                value = Path(self.file or "").read_text("utf-8")
            except OSError as error:
                raise SecretUnusable(f"{self.location}: {error.strerror}") from None
            except ValueError:
                raise SecretUnusable(f"{self.location} holds no UTF-8 text") from None
        value = trimmed(value)
        if not value:
            raise SecretUnusable(f"{self.location} is empty")
        if any(unicodedata.category(character) in _INVISIBLE for character in value):
            raise SecretUnusable(f"{self.location} contains a line end or another invisible character")
        return SecretStr(value)


class SecretUrl(Secret):
    """An HTTP URL that is a secret, because it authorises to post."""

    def resolve(self) -> SecretStr:
        """The current URL; raises SecretUnusable also if it is none, or has a login, which would not be sent."""
        try:
            url = _URL.validate_python(super().resolve().get_secret_value())
        except ValidationError:
            raise SecretUnusable(f"{self.location} does not hold an HTTP URL") from None
        if url.username or url.password:
            raise SecretUnusable(f"{self.location} holds a URL with a user name or a password, which are not sent")
        return SecretStr(str(url))


class SigningSecret(Secret):
    """The signing secret of a webhook: base64 of 24 bytes or more."""

    def resolve(self) -> SecretStr:
        """The current secret; raises SecretUnusable also if it is no key."""
        found = super().resolve()
        value = found.get_secret_value().removeprefix(SECRET_PREFIX)
        try:
            key = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
        except (binascii.Error, ValueError):
            raise SecretUnusable(f"{self.location} does not hold a base64 secret ({SECRET_PREFIX}...)") from None
        if len(key) < MIN_SECRET_BYTES:
            least = f"a signing secret has at least {MIN_SECRET_BYTES}"
            raise SecretUnusable(f"{self.location} holds {len(key)} bytes, {least}")
        return found
