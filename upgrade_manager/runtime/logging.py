"""Log lines: structlog's and the standard library's alike, as JSON on a pipe and readable on a terminal.

A line is a constant event name and key/value pairs, never a sentence with values in it and never a whole object.
"""

from __future__ import annotations

import logging
import os
from datetime import UTC
from enum import StrEnum
from typing import TYPE_CHECKING, TextIO

import structlog

from upgrade_manager.runtime.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from structlog.typing import EventDict, Processor, WrappedLogger

LEVELS = ("debug", "info", "warning", "error")


class LogFormat(StrEnum):
    """Values of `--log-format`."""

    AUTO = "auto"
    JSON = "json"
    CONSOLE = "console"


def configure_logging(
    *,
    level: str,
    log_format: LogFormat | str,
    stream: TextIO,
    now: Callable[[], datetime],
) -> None:
    """Send all logging of the process to `stream`, from `level` up; called once, first thing. Raises ValueError.

    AUTO is CONSOLE on a terminal and JSON elsewhere. Colours are left out where NO_COLOR is set.
    """
    if level not in LEVELS:
        raise ValueError(f"log level {level!r} is unknown: use one of {', '.join(LEVELS)}")
    threshold = logging.getLevelNamesMapping()[level.upper()]
    fields = _fields(now)
    rendering: list[Processor] = [
        structlog.processors.format_exc_info,
        redact,
        _renderer(LogFormat(log_format), stream),
    ]
    structlog.configure(
        processors=[*fields, *rendering],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=_logger_factory(stream),
        cache_logger_on_first_use=False,
    )
    _route_stdlib(threshold, stream, fields=fields, rendering=rendering)


def _fields(now: Callable[[], datetime]) -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.stdlib.add_logger_name,
        _timestamp(now),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.UnicodeDecoder(),
    ]


def _timestamp(now: Callable[[], datetime]) -> Processor:
    def add(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        moment = now().astimezone(UTC)
        return {"timestamp": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"), **event}

    return add


def _renderer(log_format: LogFormat, stream: TextIO) -> Processor:
    terminal = stream.isatty()
    if log_format is LogFormat.JSON or (log_format is LogFormat.AUTO and not terminal):
        return structlog.processors.JSONRenderer(default=str)
    # The plain formatter: rich's prints local variables, which may be secrets, and is slow to load.
    return structlog.dev.ConsoleRenderer(
        colors=terminal and not os.environ.get("NO_COLOR"), exception_formatter=structlog.dev.plain_traceback
    )


def _route_stdlib(threshold: int, stream: TextIO, *, fields: list[Processor], rendering: list[Processor]) -> None:
    """Give lines of aiohttp, asyncio and the like the same form; below a warning only when debugging."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=fields,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(threshold if threshold == logging.DEBUG else max(threshold, logging.WARNING))


class _NamedLogger(structlog.PrintLogger):
    """Writes lines, and knows what `structlog.get_logger` was given as the name."""

    def __init__(self, name: str, stream: TextIO) -> None:
        super().__init__(stream)
        self.name = name


def _logger_factory(stream: TextIO) -> Callable[..., _NamedLogger]:
    def make(*names: str) -> _NamedLogger:
        return _NamedLogger(names[0] if names else "", stream)

    return make
