from __future__ import annotations

import asyncio
import itertools

import pytest
from structlog.testing import capture_logs

from hack.virtual_time import virtual_now
from tests.support.managers.runtime import Reviews
from tests.support.server.tokens import token_of
from upgrade_manager.runtime.bearer_token import LEEWAY
from upgrade_manager.runtime.metrics_auth import Decision, MetricsAuthorizer
from upgrade_manager.runtime.refusal_log import LINES

#: Addresses of Prometheus and of another client.
SCRAPER, STRANGER = "192.0.2.1", "192.0.2.2"
GOOD, GUEST, STOLEN = (f"Bearer {token_of(name)}" for name in ("good-prometheus", "good-guest", "stolen"))


class Scraped:
    """An authorizer, and requests by one peer unless another is named."""

    def __init__(self, reviews: Reviews) -> None:
        self._authorizer = MetricsAuthorizer(reviews.client(), path="/metrics", now=virtual_now)

    async def authorize(self, header: str, *, peer: str = SCRAPER) -> Decision:
        return await self._authorizer.authorize(header, peer=peer)


def made_up(name: object) -> str:
    return f"Bearer {token_of(f'made-up-{name}')}"


@pytest.mark.parametrize(
    ("header", "decision", "reviews"),
    [
        (GOOD, Decision(200), 2),
        (f"bearer   {token_of('good-prometheus')} ", Decision(200), 2),
        (GUEST, Decision(403, "Authorization denied for user guest\n"), 2),
        (STOLEN, Decision(401, "Unauthorized\n"), 1),
        ("Bearer \udce4", Decision(401, "Unauthorized\n"), 0),
        ("Bearer ", Decision(401, "Unauthorized\n"), 0),
        ("Basic good", Decision(401, "Unauthorized\n"), 0),
        ("", Decision(401, "Unauthorized\n"), 0),
        ("Bearer " + token_of("x" * 20000), Decision(401, "Unauthorized\n"), 0),
    ],
)
async def test_header_decides(header: str, decision: Decision, reviews: int) -> None:
    server = Reviews()
    assert await Scraped(server).authorize(header) == decision
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
    authorizer = Scraped(server)
    assert await authorizer.authorize(GOOD) == Decision(500, text)
    getattr(server, fault).clear()
    assert await authorizer.authorize(GOOD) == Decision(200)


@pytest.mark.rule("security: each kind of refusal has at most 20 short lines a minute, without the client's text")
async def test_failed_reviews_have_few_lines() -> None:
    server = Reviews(broken={"TokenReview"})
    authorizer = Scraped(server)
    with capture_logs() as lines:
        for number in range(200):
            await authorizer.authorize(made_up(number), peer=f"10.52.0.{number % 50}")
        await asyncio.sleep(60)
        await authorizer.authorize(made_up("last"), peer="10.52.0.1")
    assert len(lines) == LINES + 1
    assert lines[-1]["suppressed"] == 200 - LINES


@pytest.mark.parametrize(("token", "ttl"), [(GOOD, 60), (GUEST, 10), (STOLEN, 10)])
async def test_decisions_are_cached_until_they_expire(token: str, ttl: float) -> None:
    server = Reviews()
    authorizer = Scraped(server)
    first = await authorizer.authorize(token)
    reviews = len(server.specs)
    await asyncio.sleep(ttl - 1)
    assert await authorizer.authorize(token) == first
    assert len(server.specs) == reviews
    await asyncio.sleep(2)
    await authorizer.authorize(token)
    assert len(server.specs) == 2 * reviews


async def test_concurrent_requests_with_one_token_share_reviews() -> None:
    server = Reviews(delay=0.1)
    authorizer = Scraped(server)
    decisions = await asyncio.gather(*[authorizer.authorize(GOOD) for _ in range(1000)])
    assert set(decisions) == {Decision(200)}
    assert (server.max_concurrent, len(server.specs)) == (1, 2)


async def test_unknown_tokens_are_reviewed_at_a_limited_rate() -> None:
    server = Reviews()
    authorizer = Scraped(server)
    decisions = [await authorizer.authorize(made_up(number)) for number in range(1000)]
    assert [decision.status for decision in decisions] == [401] * 20 + [429] * 980
    for number in range(600):
        await asyncio.sleep(0.1)
        await authorizer.authorize(made_up(f"later-{number}"))
    assert len(server.specs) == pytest.approx(20 + 60 / 0.25, abs=1)
    assert len(authorizer._authorizer._denied._decisions) == 256


@pytest.mark.parametrize("fault", ["", "hanging"])
async def test_unknown_tokens_do_not_delay_a_known_scraper(fault: str) -> None:
    server = Reviews()
    authorizer = Scraped(server)
    assert await authorizer.authorize(GOOD) == Decision(200)
    server.hanging = {"TokenReview"} if fault else set()
    async with asyncio.TaskGroup() as group:
        for number in range(1000):
            group.create_task(authorizer.authorize(made_up(number)))
        await asyncio.sleep(59)
        reviews = len(server.specs)
        assert await authorizer.authorize(GOOD) == Decision(200)
        assert len(server.specs) == reviews
        server.hanging.clear()
        await asyncio.sleep(2)
        assert await authorizer.authorize(GOOD) == Decision(200)


@pytest.mark.parametrize("kind", ["TokenReview", "SubjectAccessReview"])
@pytest.mark.parametrize("fault", ["broken", "hanging"])
@pytest.mark.parametrize(("age", "status"), [(3500, 200), (3700, 500)])
async def test_known_scraper_is_allowed_while_the_api_is_away(kind: str, fault: str, age: float, status: int) -> None:
    server = Reviews()
    authorizer = Scraped(server)
    await authorizer.authorize(GOOD)
    getattr(server, fault).add(kind)
    await asyncio.sleep(age)
    assert (await authorizer.authorize(GOOD)).status == status
    assert (await authorizer.authorize(f"Bearer {token_of('good-other')}")).status == 500


async def test_scraper_that_loses_its_right_is_unknown() -> None:
    server = Reviews()
    authorizer = Scraped(server)
    await authorizer.authorize(GOOD)
    server.allowed.clear()
    await asyncio.sleep(61)
    assert (await authorizer.authorize(GOOD)).status == 403
    await asyncio.sleep(11)
    server.broken = {"TokenReview"}
    assert (await authorizer.authorize(GOOD)).status == 500


async def flood(authorizer: Scraped, *, peers: list[str], connections: int) -> None:
    """Request with ever new tokens on all connections, without end."""

    async def request(connection: int) -> None:
        for number in itertools.count():
            await authorizer.authorize(made_up(f"{connection}-{number}"), peer=peers[connection % len(peers)])
            await asyncio.sleep(0.05)

    async with asyncio.TaskGroup() as group:
        for connection in range(connections):
            group.create_task(request(connection))


@pytest.mark.rule("security: made-up tokens do not keep a rotated token of Prometheus out")
@pytest.mark.parametrize("peers", [1, 20])
async def test_rotated_token_passes_at_its_first_scrape(peers: int) -> None:
    server = Reviews(delay=0.01)
    authorizer = Scraped(server)
    decisions = []
    async with asyncio.TaskGroup() as group:
        strangers = [f"198.51.100.{number}" for number in range(peers)]
        flooding = group.create_task(flood(authorizer, peers=strangers, connections=20))
        for rotation in range(30):
            await asyncio.sleep(0.3)
            async with asyncio.timeout(1):
                decisions.append(await authorizer.authorize(f"Bearer {token_of('good-prometheus', jti=rotation)}"))
        flooding.cancel()
    assert decisions == [Decision(200)] * 30
    assert server.max_concurrent <= 4


@pytest.mark.rule("security: a token that is not a JSON web token costs no TokenReview")
async def test_opaque_tokens_do_not_use_up_the_reviews_of_their_peer() -> None:
    server = Reviews()
    authorizer = Scraped(server)
    for number in range(1000):
        assert await authorizer.authorize(f"Bearer opaque-{number}") == Decision(401, "Unauthorized\n")
    assert server.specs == []
    assert await authorizer.authorize(GOOD) == Decision(200)


async def test_expired_token_is_refused_although_it_was_allowed() -> None:
    server = Reviews()
    authorizer = Scraped(server)
    expiring = f"Bearer {token_of('good-prometheus', exp=virtual_now().timestamp() + 100)}"
    assert await authorizer.authorize(expiring) == Decision(200)
    await asyncio.sleep(100 + LEEWAY)
    reviews = len(server.specs)
    assert await authorizer.authorize(expiring) == Decision(401, "Unauthorized\n")
    assert len(server.specs) == reviews
