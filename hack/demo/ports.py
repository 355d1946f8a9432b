"""Free ports for the manager's servers, so that several demos can run at a time."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Ports of HOST."""

    webhook: int
    probes: int


@contextlib.contextmanager
def reserved_ports() -> Iterator[Ports]:
    """Reserve ports until the context ends.

    Linux gives a bound port to no other program that asks for a free one. A listener that sets SO_REUSEADDR, as
    asyncio's do, can still use it, again after a restart.
    """
    with socket.socket() as first, socket.socket() as second:
        webhook, probes = (_bind(one) for one in (first, second))
        yield Ports(webhook=webhook, probes=probes)


def _bind(one: socket.socket) -> int:
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind((HOST, 0))
    return int(one.getsockname()[1])
