"""Settings of a process that come from environment variables of one prefix."""

import os
import re
import socket
import time
from collections.abc import Mapping
from functools import cache
from typing import Any, Self, TypeVar

from pydantic import SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from lozenge import validation
from lozenge.errors import ConfigError
from lozenge.process.text_files import trimmed


def sendable(token: SecretStr) -> SecretStr:
    """A token that can be sent in a header of HTTP; raises ValueError for another."""
    if not token.get_secret_value().isascii() or not token.get_secret_value().isprintable():
        raise ValueError("a token has printable ASCII characters only, since it is sent in a header")
    return token


A = TypeVar("A", bound="FromEnvironment")
B = TypeVar("B", bound="FromEnvironment")
_NAMED = re.compile(r"\$\{(\w+)\}")
"""A variable within a text of a file."""
_PASSWORD = re.compile(r"://[^/@:]*:(?!\$\{\w+\}@)[^/@]+@|[?&]\w*password=(?!\$\{\w+\}(?:&|$))[^&]", re.IGNORECASE)


@cache
def this_start() -> str:
    """A name for this start of this process that no other start has: its counters begin at zero with it."""
    return f"{socket.gethostname()}-{os.getpid()}-{int(time.time())}"


class FromEnvironment(BaseSettings):
    """Base of all settings: a subclass sets `env_prefix`; a field `name` is the variable `<prefix>NAME`.

    A field with a `validation_alias` is the variable of that name. A field that is no single value is annotated
    `Json[...]` and written as JSON. Spaces and line ends around a value are removed: secret stores and `echo` add them.
    """

    model_config = SettingsConfigDict(
        extra="forbid", enable_decoding=False, validate_default=False, validate_by_name=True, validate_by_alias=True
    )

    @classmethod
    def variable_names(cls) -> dict[str, str]:
        """The environment variable of each field."""
        prefix = cls.model_config["env_prefix"]
        return {n: str(field.validation_alias or f"{prefix}{n.upper()}") for n, field in cls.model_fields.items()}

    @field_validator("*", mode="before")
    @classmethod
    def _trimmed(cls, given: Any) -> Any:
        return trimmed(given) if isinstance(given, str) else given

    @classmethod
    def load(cls, **given: Any) -> Self:
        """The settings of this process, `given` before the environment.

        Raises ConfigError with every problem: the variable's name and what is wrong, never its value, which may
        be secret. A variable of the prefix that is no setting is a problem too.
        """
        prefix, variables = cls.model_config["env_prefix"], cls.variable_names()
        known = variables.values()
        unknown = sorted(name for name in os.environ if name.upper().startswith(prefix) and name.upper() not in known)
        problems = [f"{name}: there is no such setting, only {', '.join(known)}" for name in unknown]
        try:
            settings = cls(**given)
        except ValidationError as error:
            for e in validation.problems(error):
                name = str(e["loc"][0]) if e["loc"] else "*"
                variable = name if name in known else variables.get(name, f"{prefix}{name}")
                problems.append(f"{variable}: {e['msg']}")
        if problems:
            raise ConfigError(f"reading {prefix}* from the environment", problems=problems)
        return settings


def load(one: type[A], other: type[B]) -> tuple[A, B]:
    """The settings of both; raises one ConfigError with the problems of both."""
    try:
        first = one.load()
    except ConfigError as error:
        try:
            other.load()
        except ConfigError as more:
            raise ConfigError(
                "reading the settings from the environment", problems=[*error.problems, *more.problems]
            ) from None
        raise
    return first, other.load()


def named_variables(text: str) -> list[str]:
    """The variables that a text of a file names as `${NAME}`, each once and in order of name."""
    return sorted({*_NAMED.findall(text)})


def require_no_password(url: str) -> str:
    """The URL of a file; raises ValueError if it has a password that is no variable `${NAME}`."""
    if _PASSWORD.search(url) is not None:
        raise ValueError("it has a password: write ${NAME} for a variable of the environment in its place")
    return url


def with_variables(url: str, environment: Mapping[str, str], *, doing: str, hint: str) -> str:
    """The URL with the value of each `${NAME}`; raises ConfigError with every variable that is not set."""
    if missing := [name for name in named_variables(url) if name not in environment]:
        raise ConfigError(
            f"{doing}: {url} needs variables that are not set",
            problems=[f"{name} is not set" for name in missing],
            hint=hint,
        )
    return _NAMED.sub(lambda found: environment[found.group(1)], url)
