"""Logs what clients without credentials do, in few and short lines.

`http_server` passes a RequestLogger to aiohttp; `webhook.review_log` limits the lines of reviews.
"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from typing import TYPE_CHECKING

import structlog
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestPayloadError

from upgrade_manager.kube.clock import loop_time

if TYPE_CHECKING:
    from collections.abc import Hashable

#: Lines of one key in any PERIOD of seconds.
LINES, PERIOD = 20, 60.0
#: Keys that are remembered; the one with the oldest line is forgotten first.
_MAX_KEYS = 256
#: Errors of the client, not of the handler.
_CLIENT_ERRORS = (HttpProcessingError, RequestPayloadError, ConnectionError)
log = structlog.get_logger(__name__)


class LineLimit:
    """Limits the log lines of each key, such as a kind of refusal or the address of a client."""

    def __init__(self, lines: int = LINES) -> None:
        self._lines = lines
        #: Times of the last lines, and the number of lines suppressed since then.
        self._keys: OrderedDict[Hashable, tuple[deque[float], int]] = OrderedDict()

    def take(self, key: Hashable) -> int | None:
        """Return the number of lines suppressed since the key's last line; None to suppress this one, too."""
        times, suppressed = self._keys.get(key) or (deque[float](maxlen=self._lines), 0)
        if len(times) == self._lines and loop_time() < times[0] + PERIOD:
            self._keys[key] = (times, suppressed + 1)
            return None
        times.append(loop_time())
        self._keys[key] = (times, 0)
        self._keys.move_to_end(key)
        if len(self._keys) > _MAX_KEYS:
            self._keys.popitem(last=False)
        return suppressed

    def give_back(self, key: Hashable, suppressed: int) -> None:
        """Undo `take`, which returned that number: another limit suppresses the line."""
        times, _ = self._keys[key]
        times.pop()
        self._keys[key] = (times, suppressed)


class RequestLogger(logging.Logger):
    """The logger of aiohttp's server: a line without the client's text for each refused request.

    A bug in a handler is logged with its traceback, which `logging` bounds.
    """

    def __init__(self, server: str) -> None:
        super().__init__(f"{__name__}.{server}")
        self._structured = log.bind(server=server)
        self._limit = LineLimit()

    def handle(self, record: logging.LogRecord) -> None:
        """Log the record's exception; aiohttp's other records are for debugging."""
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            return
        kind = type(error).__name__
        suppressed = self._limit.take(kind)
        if suppressed is None:
            return
        fields = {"kind": kind, "peer": _peer(record), "suppressed": suppressed or None}
        if isinstance(error, _CLIENT_ERRORS):
            self._structured.info("request refused", **fields)
        else:
            self._structured.error("request failed unexpectedly", exc_info=error, **fields)


def _peer(record: logging.LogRecord) -> str:
    """Return the client's address, the argument of aiohttp's message about a request."""
    return str(record.args[0] or "") if isinstance(record.args, tuple) and record.args else ""
