from __future__ import annotations

import asyncio

import pytest

from tests.support.runtime import Reviews
from upgrade_manager.runtime.metrics_auth import Decision, MetricsAuthorizer


def new_authorizer(reviews: Reviews) -> MetricsAuthorizer:
    return MetricsAuthorizer(reviews.client(), path="/metrics")


@pytest.mark.parametrize(
    ("header", "decision", "reviews"),
    [
        ("Bearer good-prometheus", Decision(200), 2),
        ("bearer   good-prometheus ", Decision(200), 2),
        ("Bearer good-guest", Decision(403, "Authorization denied for user guest\n"), 2),
        ("Bearer stolen", Decision(401, "Unauthorized\n"), 1),
        ("Bearer \udce4", Decision(401, "Unauthorized\n"), 0),
        ("Bearer ", Decision(401, "Unauthorized\n"), 0),
        ("Basic good-prometheus", Decision(401, "Unauthorized\n"), 0),
        ("", Decision(401, "Unauthorized\n"), 0),
        ("Bearer " + "x" * 20000, Decision(401, "Unauthorized\n"), 0),
    ],
)
async def test_header_decides(header: str, decision: Decision, reviews: int) -> None:
    server = Reviews()
    assert await new_authorizer(server).authorize(header) == decision
    assert len(server.specs) == reviews


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("TokenReview", "Authentication failed\n"),
        ("SubjectAccessReview", "Authorization for user prometheus failed\n"),
    ],
)
@pytest.mark.parametrize("fault", ["broken", "hanging"])
async def test_failed_review_is_a_500_and_not_cached(kind: str, text: str, fault: str) -> None:
    server = Reviews()
    getattr(server, fault).add(kind)
    authorizer = new_authorizer(server)
    assert await authorizer.authorize("Bearer good-prometheus") == Decision(500, text)
    getattr(server, fault).clear()
    assert await authorizer.authorize("Bearer good-prometheus") == Decision(200)


@pytest.mark.parametrize(("token", "ttl"), [("good-prometheus", 60), ("good-guest", 10), ("stolen", 10)])
async def test_decisions_are_cached_until_they_expire(token: str, ttl: float) -> None:
    server = Reviews()
    authorizer = new_authorizer(server)
    first = await authorizer.authorize(f"Bearer {token}")
    reviews = len(server.specs)
    await asyncio.sleep(ttl - 1)
    assert await authorizer.authorize(f"Bearer {token}") == first
    assert len(server.specs) == reviews
    await asyncio.sleep(2)
    await authorizer.authorize(f"Bearer {token}")
    assert len(server.specs) == 2 * reviews


@pytest.mark.parametrize(
    ("tokens", "reviews", "cached"),
    [([str(number) for number in range(1000)], 1000, 256), (["good-prometheus"] * 1000, 8, 1)],
    ids=["a token each", "one token"],
)
async def test_concurrent_requests_share_few_reviews(tokens: list[str], reviews: int, cached: int) -> None:
    server = Reviews(delay=0.1)
    authorizer = new_authorizer(server)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(authorizer.authorize(f"Bearer {token}")) for token in tokens]
    assert {task.result().status for task in tasks} == {200 if cached == 1 else 401}
    assert (server.max_concurrent, len(server.specs), len(authorizer._decisions)) == (4, reviews, cached)
