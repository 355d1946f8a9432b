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


async def test_concurrent_requests_with_one_token_share_reviews() -> None:
    server = Reviews(delay=0.1)
    authorizer = new_authorizer(server)
    decisions = await asyncio.gather(*[authorizer.authorize("Bearer good-prometheus") for _ in range(1000)])
    assert set(decisions) == {Decision(200)}
    assert (server.max_concurrent, len(server.specs)) == (4, 8)


async def test_unknown_tokens_are_reviewed_at_a_limited_rate() -> None:
    server = Reviews()
    authorizer = new_authorizer(server)
    decisions = [await authorizer.authorize(f"Bearer {number}") for number in range(1000)]
    assert [decision.status for decision in decisions] == [401] * 20 + [429] * 980
    for number in range(600):
        await asyncio.sleep(0.1)
        await authorizer.authorize(f"Bearer later-{number}")
    assert len(server.specs) == pytest.approx(20 + 60 / 0.25, abs=1)
    assert len(authorizer._denied._decisions) == 256


@pytest.mark.parametrize("fault", ["", "hanging"])
async def test_unknown_tokens_do_not_delay_a_known_scraper(fault: str) -> None:
    server = Reviews()
    authorizer = new_authorizer(server)
    assert await authorizer.authorize("Bearer good-prometheus") == Decision(200)
    server.hanging = {"TokenReview"} if fault else set()
    async with asyncio.TaskGroup() as group:
        for number in range(1000):
            group.create_task(authorizer.authorize(f"Bearer {number}"))
        await asyncio.sleep(59)
        reviews = len(server.specs)
        assert await authorizer.authorize("Bearer good-prometheus") == Decision(200)
        assert len(server.specs) == reviews
        server.hanging.clear()
        await asyncio.sleep(2)
        assert await authorizer.authorize("Bearer good-prometheus") == Decision(200)


@pytest.mark.parametrize("kind", ["TokenReview", "SubjectAccessReview"])
@pytest.mark.parametrize("fault", ["broken", "hanging"])
@pytest.mark.parametrize(("age", "status"), [(3500, 200), (3700, 500)])
async def test_known_scraper_is_allowed_while_the_api_is_away(kind: str, fault: str, age: float, status: int) -> None:
    server = Reviews()
    authorizer = new_authorizer(server)
    await authorizer.authorize("Bearer good-prometheus")
    getattr(server, fault).add(kind)
    await asyncio.sleep(age)
    assert (await authorizer.authorize("Bearer good-prometheus")).status == status
    assert (await authorizer.authorize("Bearer good-other")).status == 500


async def test_scraper_that_loses_its_right_is_unknown() -> None:
    server = Reviews()
    authorizer = new_authorizer(server)
    await authorizer.authorize("Bearer good-prometheus")
    server.allowed.clear()
    await asyncio.sleep(61)
    assert (await authorizer.authorize("Bearer good-prometheus")).status == 403
    await asyncio.sleep(11)
    server.broken = {"TokenReview"}
    assert (await authorizer.authorize("Bearer good-prometheus")).status == 500
