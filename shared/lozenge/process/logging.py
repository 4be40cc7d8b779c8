"""JSON log lines on standard error, configured once per process.

Key names are fixed: `app`, `instance`, `release`, `topic`, `partition`, `offset`, `batch`, `event_id`.
Normal operation logs nothing per record. On a terminal lines are for people, otherwise JSON.
"""

import io
import logging
import sys
from contextlib import suppress
from typing import Any, TextIO, cast

import structlog

from lozenge.errors import Fenced, LozengeError
from lozenge.process.env_settings import this_start


def configure(app: str, *, instance: str = "", debug: bool = False, **context: Any) -> None:
    """Sends structlog and the standard library's logging to stderr; `context` is bound to every line.

    `instance` is by default a name for this start of the process.
    """
    level = logging.DEBUG if debug else logging.INFO
    human = sys.stderr.isatty()
    renderer: Any = structlog.dev.ConsoleRenderer() if human else structlog.processors.JSONRenderer()
    ending = [_in_order, renderer]
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.format_exc_info, *ending],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=cast(TextIO, _StandardError())),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    # libraries log exceptions with their stack; as a text it is what a reader can use
    foreign = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.format_exc_info,
        *ending,
    ]
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(processors=foreign, foreign_pre_chain=shared))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    # PySpark prints every exception that it translates, with the JVM's stack; our own lines have what matters.
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    structlog.contextvars.bind_contextvars(app=app, instance=instance or this_start(), **context)


class _StandardError(io.TextIOBase):
    """Standard error as it is now; a line that cannot be written, as on a full disk, is lost and ends nothing."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            sys.stderr.flush()


def report(error: LozengeError) -> int:
    """Logs the error that ends this process, as a warning if another process has replaced it; returns the exit code."""
    say = logger().warning if isinstance(error, Fenced) else logger().error
    say(error.message, hint=error.hint, kind=type(error).__name__)
    return error.exit_code


def _in_order(_logger: Any, _method: str, line: Any) -> Any:
    """When, how severe and what come first, for people who read the raw lines."""
    return {name: line.pop(name) for name in ("time", "level", "app", "event") if name in line} | line


def logger() -> Any:
    """The logger of the calling process; keyword arguments become keys of the line.

    A command that configures none logs to standard error too: standard output is for its results.
    """
    if not structlog.is_configured():
        structlog.configure(logger_factory=structlog.PrintLoggerFactory(cast(TextIO, _StandardError())))
    return structlog.get_logger()
