from __future__ import annotations

import asyncio

from upgrade_manager.runtime.review_shares import MAX_PEERS, REVIEW_BURST, REVIEW_INTERVAL, ReviewShares


async def taken(shares: ReviewShares, peer: str) -> bool:
    async with shares.turn(peer) as share:
        return share.take()


async def test_each_peer_has_a_burst_and_a_rate() -> None:
    shares = ReviewShares()
    for peer in ("a", "b"):
        assert [await taken(shares, peer) for _ in range(REVIEW_BURST + 1)] == [True] * REVIEW_BURST + [False]
    await asyncio.sleep(REVIEW_INTERVAL)
    assert [await taken(shares, "a") for _ in range(2)] == [True, False]
    await asyncio.sleep(REVIEW_BURST * REVIEW_INTERVAL)
    assert [await taken(shares, "a") for _ in range(REVIEW_BURST + 1)] == [True] * REVIEW_BURST + [False]


async def test_turns_of_a_peer_follow_each_other_and_of_two_do_not() -> None:
    shares, turns = ReviewShares(), list[tuple[float, str]]()

    async def review(peer: str) -> None:
        async with shares.turn(peer):
            turns.append((asyncio.get_running_loop().time(), peer))
            await asyncio.sleep(1)

    await asyncio.gather(review("a"), review("a"), review("b"))
    assert turns == [(0, "a"), (0, "b"), (1, "a")]


async def test_number_of_remembered_peers_is_limited() -> None:
    shares = ReviewShares()
    async with shares.turn("busy") as busy:
        while busy.take():
            pass
        for number in range(2 * MAX_PEERS):
            assert await taken(shares, f"peer-{number}")
        # The oldest one is in use, so none is forgotten.
        assert len(shares) == 2 * MAX_PEERS + 1
    assert len(shares) == MAX_PEERS
    assert await taken(shares, "busy")
