from __future__ import annotations

import asyncio
import io
import json
from typing import Any

import pytest
from aiohttp.http_exceptions import BadStatusLine

from upgrade_manager.runtime.refusal_log import LINES, PERIOD, LineLimit, RequestLogger

LONG = "secret" * 10_000


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def refuse(logger: RequestLogger, error: Exception, peer: str = "10.52.0.7") -> None:
    """Log as aiohttp does."""
    logger.error("Error handling request from %s", peer, exc_info=error)


class TestLineLimit:
    async def test_lines_of_any_minute_are_limited(self) -> None:
        limit, taken = LineLimit(3), []
        for second in range(121):
            taken += [second] if limit.take("key") is not None else []
            await asyncio.sleep(1)
        assert taken == [0, 1, 2, 60, 61, 62, 120]

    async def test_suppressed_lines_are_counted_in_the_next(self) -> None:
        limit = LineLimit(2)
        assert [limit.take("key") for _ in range(5)] == [0, 0, None, None, None]
        assert limit.take("other") == 0
        await asyncio.sleep(PERIOD)
        assert [limit.take("key"), limit.take("key"), limit.take("key")] == [3, 0, None]

    async def test_line_that_is_given_back_counts_as_suppressed_before(self) -> None:
        limit = LineLimit(2)
        assert [limit.take("key") for _ in range(4)] == [0, 0, None, None]
        await asyncio.sleep(PERIOD)
        assert limit.take("key") == 2
        limit.give_back("key", 2)
        assert [limit.take("key"), limit.take("key"), limit.take("key")] == [2, 0, None]

    async def test_keys_are_limited(self) -> None:
        limit = LineLimit(1)
        for key in range(1000):
            limit.take(key)
        assert len(limit._keys) == 256
        assert limit.take(999) is None
        assert limit.take(0) == 0


class TestRequestLogger:
    @pytest.mark.rule("security: each kind of refusal has at most 20 short lines a minute, without the client's text")
    async def test_refusals_have_few_short_lines(self, stream: io.StringIO) -> None:
        logger = RequestLogger("webhook")
        for _ in range(100):
            refuse(logger, BadStatusLine(LONG), "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff")
            refuse(logger, ConnectionResetError(LONG))
        await asyncio.sleep(PERIOD)
        refuse(logger, BadStatusLine(LONG))
        found = lines(stream)
        assert len(found) == 2 * LINES + 1
        assert all(len(line) <= 300 and "secret" not in line for line in stream.getvalue().splitlines())
        assert {key: found[0][key] for key in ("level", "event", "server", "kind", "peer")} == {
            "level": "info",
            "event": "request refused",
            "server": "webhook",
            "kind": "BadStatusLine",
            "peer": "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
        }
        assert found[-1]["suppressed"] == 100 - LINES

    async def test_bug_is_logged_with_a_bounded_traceback(self, stream: io.StringIO) -> None:
        logger = RequestLogger("webhook")
        for _ in range(2 * LINES):
            try:
                int(LONG)
            except ValueError as error:
                refuse(logger, error)
        found = lines(stream)
        assert len(found) == LINES
        assert {(line["level"], line["event"], line["kind"]) for line in found} == {
            ("error", "request failed unexpectedly", "ValueError")
        }
        assert "test_refusal_log.py" in found[0]["exception"]
        assert max(len(line) for line in stream.getvalue().splitlines()) < 2048

    async def test_record_without_an_exception_is_not_logged(self, stream: io.StringIO) -> None:
        RequestLogger("webhook").debug("Ignored premature client disconnection")
        assert stream.getvalue() == ""

    async def test_message_without_the_peer_is_logged(self, stream: io.StringIO) -> None:
        RequestLogger("webhook").exception("Unhandled exception", exc_info=ZeroDivisionError())
        [line] = lines(stream)
        assert (line["kind"], line.get("peer")) == ("ZeroDivisionError", None)
