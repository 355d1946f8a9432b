"""Shares reviews of unknown tokens among peers, so that a peer delays and refuses itself only (`metrics_auth`)."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from upgrade_manager.kube.clock import loop_time

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

#: Reviews of each peer: so many in a row, and one more per interval in seconds.
REVIEW_BURST, REVIEW_INTERVAL = 20, 0.25
#: Peers that are remembered; the one whose last turn is the oldest is forgotten first.
MAX_PEERS = 1024


@dataclass(eq=False, slots=True)
class Share:
    """The share of one peer."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    #: Requests that have or await a turn.
    requests: int = 0
    #: Loop time at which all of REVIEW_BURST is available again.
    refilled_at: float = float("-inf")

    def take(self) -> bool:
        """Take one review; False if none is left."""
        due = max(self.refilled_at, loop_time()) + REVIEW_INTERVAL
        if due > loop_time() + REVIEW_BURST * REVIEW_INTERVAL:
            return False
        self.refilled_at = due
        return True


class ReviewShares:
    """The shares of all peers."""

    def __init__(self) -> None:
        self._shares: OrderedDict[str, Share] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of peers that are remembered."""
        return len(self._shares)

    @asynccontextmanager
    async def turn(self, peer: str) -> AsyncIterator[Share]:
        """Give the share of a peer, to one request at a time."""
        share = self._shares.setdefault(peer, Share())
        self._shares.move_to_end(peer)
        share.requests += 1
        try:
            async with share.lock:
                yield share
        finally:
            share.requests -= 1
            self._forget()

    def _forget(self) -> None:
        while len(self._shares) > MAX_PEERS and not next(iter(self._shares.values())).requests:
            self._shares.popitem(last=False)
