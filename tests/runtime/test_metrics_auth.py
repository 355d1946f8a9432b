from __future__ import annotations

import asyncio

import pytest

from tests.support.runtime_reviews import Reviews
from upgrade_manager.runtime.metrics_auth import Scrapers, Verdict


def scrapers(reviews: Reviews) -> Scrapers:
    return Scrapers(reviews.client(), path="/metrics")


@pytest.mark.parametrize(
    ("header", "verdict", "reviews"),
    [
        ("Bearer good-prometheus", Verdict(200), 2),
        ("bearer   good-prometheus ", Verdict(200), 2),
        ("Bearer good-nobody", Verdict(403, "Authorization denied for user nobody\n"), 2),
        ("Bearer stolen", Verdict(401, "Unauthorized\n"), 1),
        ("Bearer \udce4", Verdict(401, "Unauthorized\n"), 0),
        ("Bearer ", Verdict(401, "Unauthorized\n"), 0),
        ("Basic good-prometheus", Verdict(401, "Unauthorized\n"), 0),
        ("", Verdict(401, "Unauthorized\n"), 0),
        ("Bearer " + "x" * 20000, Verdict(401, "Unauthorized\n"), 0),
    ],
)
async def test_verdicts(header: str, verdict: Verdict, reviews: int) -> None:
    server = Reviews()
    assert await scrapers(server).judge(header) == verdict
    assert len(server.asked) == reviews


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("TokenReview", "Authentication failed\n"),
        ("SubjectAccessReview", "Authorization for user prometheus failed\n"),
    ],
)
@pytest.mark.parametrize("fault", ["broken", "hanging"])
async def test_a_review_that_fails_is_our_failure_and_not_kept(kind: str, text: str, fault: str) -> None:
    server = Reviews()
    getattr(server, fault).add(kind)
    judge = scrapers(server)
    assert await judge.judge("Bearer good-prometheus") == Verdict(500, text)
    getattr(server, fault).clear()
    assert await judge.judge("Bearer good-prometheus") == Verdict(200)


@pytest.mark.parametrize(("token", "kept"), [("good-prometheus", 60), ("good-nobody", 10), ("stolen", 10)])
async def test_a_verdict_is_kept_for_a_while(token: str, kept: float) -> None:
    server = Reviews()
    judge = scrapers(server)
    first = await judge.judge(f"Bearer {token}")
    asked = len(server.asked)
    await asyncio.sleep(kept - 1)
    assert await judge.judge(f"Bearer {token}") == first
    assert len(server.asked) == asked
    await asyncio.sleep(2)
    await judge.judge(f"Bearer {token}")
    assert len(server.asked) == 2 * asked


async def test_wrong_tokens_flood_neither_the_memory_nor_the_api() -> None:
    server = Reviews(delay=0.1)
    judge = scrapers(server)
    async with asyncio.TaskGroup() as group:
        for number in range(1000):
            group.create_task(judge.judge(f"Bearer {number}"))
    assert server.most_at_once == 4
    assert len(judge._verdicts) == 256


async def test_many_requests_with_one_token_cost_a_handful_of_reviews() -> None:
    server = Reviews(delay=0.1)
    judge = scrapers(server)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(judge.judge("Bearer good-prometheus")) for _ in range(1000)]
    assert {task.result() for task in tasks} == {Verdict(200)}
    assert len(server.asked) == 8
