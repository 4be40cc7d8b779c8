"""Notification channels. Each module here is one kind; its name is the `type` that the routing file gives.

A new kind needs a module with a class `Channel`, a subclass of `base.channel.Channel`, whose `sender` returns an async
context manager with `send`. It is found by its file; nothing registers it.
"""

import importlib
import pkgutil
from functools import cache
from typing import Any

from pydantic import ValidationInfo, ValidatorFunctionWrapHandler, WrapValidator

from lozenge_downstream.channels.base.channel import Channel


def kinds() -> list[str]:
    """The types of channels, in order."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg)


@cache
def kind(name: str) -> type[Channel]:
    """The class of the type `name`, which is one of `kinds`."""
    found: type[Channel] = importlib.import_module(f"{__name__}.{name}").Channel
    return found


def channel_of() -> WrapValidator:
    """Validates a section of the routing file as the channel that its `type` names."""

    def validate(given: Any, _: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Channel:
        if isinstance(given, Channel):
            return given
        name = given.get("type") if isinstance(given, dict) else None
        if name not in kinds():
            raise ValueError(f"type is {name!r}, which is none of {', '.join(kinds())}")
        return kind(name).model_validate(given, context=info.context)

    return WrapValidator(validate)
