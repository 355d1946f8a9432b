"""Logs the reviews of API servers in full, and the reviews of any other peer in few and short lines.

`server` logs each decision and each bad review by this module; `request_log` has the fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from upgrade_manager.runtime.refusal_log import LineLimit
from webhook.review import printable

if TYPE_CHECKING:
    from collections.abc import Hashable

    from upgrade_manager.runtime.peers import Peer

#: The most lines per minute about denied reviews of one peer, and of all peers.
PEER_LINES, ALL_LINES = 20, 60
#: Bytes of a value.
_MAX_VALUE = 64
log = structlog.get_logger(__name__)


class ReviewLog:
    """Limits the lines about peers that are not API servers, which send the admissions of real users."""

    def __init__(self) -> None:
        self._of_peer, self._of_all, self._of_status = LineLimit(PEER_LINES), LineLimit(ALL_LINES), LineLimit()

    def decided(self, event: str, peer: Peer, **fields: str | int) -> None:
        """Log a decision with the peer's address; a peer that is not an API server may have forged the request."""
        fields["from_api_server"] = "yes" if peer.goes_last else "no"
        self._info(event, peer, limits=[(self._of_peer, (event, peer.name)), (self._of_all, event)], **fields)

    def refused(self, peer: Peer, *, error: str, status: int) -> None:
        """Log a request that is not a review."""
        self._info("bad review", peer, limits=[(self._of_status, status)], error=error, status=status)

    def _info(self, event: str, peer: Peer, *, limits: list[tuple[LineLimit, Hashable]], **fields: str | int) -> None:
        if peer.goes_last:
            log.info(event, peer=peer.name, **fields)
            return
        taken: list[tuple[LineLimit, Hashable, int]] = []
        for limit, key in limits:
            suppressed = limit.take(key)
            if suppressed is None:
                for other, others_key, count in taken:
                    other.give_back(others_key, count)
                return
            taken.append((limit, key, suppressed))
        total = sum(count for _, _, count in taken)
        log.info(
            event, peer=peer.name, **{key: _short(value) for key, value in fields.items()}, suppressed=total or None
        )


def _short(value: str | int) -> str | int:
    return printable(value, limit=_MAX_VALUE) if isinstance(value, str) else value
