"""Lines about reviews: all of API servers, few of strangers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.support.webhook.webhook import API_SERVER, review, webhook
from webhook.review_log import ALL_LINES, PEER_LINES

#: Reviews of a flood in a second.
RATE = 200
PERIOD = 60
LONG = "v" * 100


def of(lines: list[Any], event: str) -> list[Any]:
    return [line for line in lines if line["event"] == event]


@pytest.mark.rule("security: strangers' reviews have at most 60 lines a minute, API servers' all of them")
@pytest.mark.parametrize(("strangers", "expected"), [(1, PEER_LINES), (100, ALL_LINES)])
async def test_denials_of_strangers_have_few_lines(strangers: int, expected: int) -> None:
    async with webhook() as server:
        with capture_logs() as lines:
            for number in range(2 * RATE):
                await server.post(review("CONNECT", name=LONG), host=f"10.52.0.{number % strangers}")
                if number % 10 == 0:
                    await server.post(review("CONNECT", name=LONG), host=API_SERVER)
            denied = of(lines, "denied")
            by_users = [line for line in denied if line["peer"] == API_SERVER]
            assert len(by_users) == 2 * RATE / 10
            assert {line["plan"] for line in by_users} == {LONG}
            assert len(denied) - len(by_users) == expected
            assert {line["peer"] for line in denied} >= {"10.52.0.0", API_SERVER}
            assert not any(line["plan"] == LONG for line in denied if line["peer"] != API_SERVER)
            await asyncio.sleep(PERIOD)
            lines.clear()
            await server.post(review("CONNECT"), host="10.52.0.0")
    [line] = of(lines, "denied")
    assert line["suppressed"] == (2 * RATE - PEER_LINES if strangers == 1 else 2 * RATE - ALL_LINES)


@pytest.mark.rule("security: strangers' reviews have at most 60 lines a minute, API servers' all of them")
async def test_each_suppressed_line_is_counted_once() -> None:
    sent = 0
    async with webhook() as server:
        with capture_logs() as lines:
            # Limits of single strangers, that of all, and both.
            for peers in (1, 10, 1, 10, 10):
                for number in range(RATE):
                    await server.post(review("CONNECT"), host=f"10.52.0.{number % peers}")
                    sent += 1
                await asyncio.sleep(PERIOD / 3)
            await asyncio.sleep(PERIOD)
            for number in range(10):
                await server.post(review("CONNECT"), host=f"10.52.0.{number}")
                sent += 1
    denied = of(lines, "denied")
    assert len(denied) + sum(line["suppressed"] or 0 for line in denied) == sent


@pytest.mark.rule("security: each kind of refusal has at most 20 short lines a minute, without the client's text")
async def test_bad_reviews_have_few_short_lines() -> None:
    async with webhook() as server:
        with capture_logs() as lines:
            for number in range(RATE):
                await server.post(b"\xff", host=f"10.52.0.{number}")
                await server.post(b"[]", content_type="secret" * 1000, host=f"10.52.0.{number}")
            await server.post(b"[]", host=API_SERVER)
    bad = of(lines, "bad review")
    assert len(bad) == 20 + 1
    assert bad[-1]["peer"] == API_SERVER
    assert not any("secret" in str(line) or len(str(line)) > 300 for line in lines)
