"""Configures structlog and standard library logging: JSON, or text on a terminal; secrets are redacted.

Every command of cli configures it first.

A log line has a constant event and key/value pairs, never a whole object. Values are bounded, whatever text of a client
they quote, so that no client pushes other lines out of the log.
"""

from __future__ import annotations

import logging
import os
import re
from datetime import UTC
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TextIO

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from structlog.typing import EventDict, Processor, WrappedLogger

LEVELS = ("debug", "info", "warning", "error")
REDACTED = "[redacted]"

#: Keys whose values are secret.
_SECRET_KEY = re.compile(
    r"authorization|token|passw|credential|cookie|api[-_]?key|private[-_]?key|bearer", re.IGNORECASE
)
#: Secrets in texts: the value of an Authorization header, user and password of a URL, a JSON web token, a PEM key.
_SECRET_TEXT = re.compile(
    r"(?<=\bbearer )[^\s\"',]+|(?<=\bbasic )[a-z0-9+/]{8,}=*|(?<=://)[^\s/?#@\"']+(?=@)|\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.IGNORECASE | re.DOTALL,
)
#: The first keys of each line, in order; those of the event follow.
_FIRST = ("timestamp", "level", "logger", "event", "controller", "key", "plan", "phase", "reconcile_id")
#: Levels of nested values that are logged.
_MAX_DEPTH = 6
#: Characters of a text, of any other value, of a traceback, and of a line of that.
MAX_TEXT, MAX_VALUE, MAX_TRACEBACK, MAX_TRACEBACK_LINE = 4096, 16384, 8192, 300


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
    """Send all logs of the process from `level` up to `stream`. Raises ValueError.

    AUTO is CONSOLE on a terminal and JSON elsewhere. NO_COLOR turns colours off.
    """
    if level not in LEVELS:
        raise ValueError(f"log level {level!r} is unknown: use one of {', '.join(LEVELS)}")
    threshold = logging.getLevelNamesMapping()[level.upper()]
    fields = _fields(now)
    rendering: list[Processor] = [
        structlog.processors.format_exc_info,
        redact,
        bound,
        in_order,
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
    # Tracebacks of rich print local variables, which may be secrets, and load slowly.
    return structlog.dev.ConsoleRenderer(
        colors=terminal and not os.environ.get("NO_COLOR"), exception_formatter=structlog.dev.plain_traceback
    )


def _route_stdlib(threshold: int, stream: TextIO, *, fields: list[Processor], rendering: list[Processor]) -> None:
    """Format logs of aiohttp, asyncio and other libraries the same way; below warning only at level debug."""
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
    """A PrintLogger with the name given to `structlog.get_logger`."""

    def __init__(self, name: str, stream: TextIO) -> None:
        super().__init__(stream)
        self.name = name


def _logger_factory(stream: TextIO) -> Callable[..., _NamedLogger]:
    def make(*names: str) -> _NamedLogger:
        return _NamedLogger(names[0] if names else "", stream)

    return make


def in_order(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Put the keys of a log line in one order and drop empty ones; a structlog processor."""
    first = {key: event[key] for key in _FIRST if key in event}
    return {key: value for key, value in {**first, **event}.items() if value is not None and value != ""}


def redact(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Replace secrets in a log line; a structlog processor."""
    return {key: _redact_value(key, value, _MAX_DEPTH) for key, value in event.items()}


def is_secret_key(key: object) -> bool:
    """Return True for a key whose value is secret."""
    return isinstance(key, str) and _SECRET_KEY.search(key) is not None


def without_secrets(text: str) -> str:
    """Return a text without tokens, passwords of URLs, and private keys."""
    return _SECRET_TEXT.sub(REDACTED, text)


def bound(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Shorten long values of a log line; a structlog processor after `redact`, which needs whole secrets."""
    return {key: _bound_value(key, value) for key, value in event.items()}


def _bound_value(key: str, value: Any) -> Any:
    if key == "exception":
        return _bound_traceback(str(value))
    if isinstance(value, str):
        return _cut(value, MAX_TEXT)
    return value if len(text := str(value)) <= MAX_VALUE else _cut(text, MAX_VALUE)


def _bound_traceback(text: str) -> str:
    """Shorten each line, then drop the middle: the first frame, the raising one and the error stay."""
    lines = "\n".join(_cut(line, MAX_TRACEBACK_LINE) for line in text.splitlines())
    if len(lines) <= MAX_TRACEBACK:
        return lines
    head = MAX_TRACEBACK // 4
    return f"{lines[:head]}\n…\n{lines[head - MAX_TRACEBACK :]}"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _redact_value(key: object, value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if is_secret_key(key):
        return REDACTED
    if isinstance(value, str):
        return without_secrets(value)
    return _redact_nested(value, depth - 1)


def _redact_nested(value: Any, depth: int) -> Any:
    if depth < 0:
        return "..."
    if isinstance(value, dict):
        return {key: _redact_value(key, item, depth) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_redact_value("", item, depth) for item in value]
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    return _SECRET_TEXT.sub(REDACTED, str(value))
