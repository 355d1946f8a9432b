"""A Pod's connection to the API server: sockets, TLS and a gateway that a test can block."""

from __future__ import annotations

from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hack.cluster.certificates import Authority, server_context
from hack.cluster.gateway import Gateway
from hack.faults.breakable_transport import BreakableTransport
from upgrade_manager.kube.config import InCluster
from upgrade_manager.kube.http_transport import HttpTransport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from upgrade_manager.kube.transport import Transport


class Answers:
    """Counts responses by status."""

    def __init__(self) -> None:
        self.codes: Counter[str] = Counter()

    def on_response(self, _method: str, _host: str, code: str, _seconds: float) -> None:
        """Count it by its status."""
        self.codes[code] += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PodConnection:
    """A manager's connection with its Pod's service account."""

    transport: HttpTransport
    #: Behind the gateway.
    line: BreakableTransport
    answers: Answers
    folder: Path

    def write_token(self, token: str) -> None:
        """Replace the token atomically, as the kubelet does."""
        write_token(self.folder, token)


def write_token(folder: Path, token: str) -> None:
    """Replace the token file atomically."""
    (folder / "..token").write_text(token)
    (folder / "..token").replace(folder / "token")


@asynccontextmanager
async def gated(inner: Transport, folder: Path, *, token: str) -> AsyncIterator[PodConnection]:
    """Run a gateway before the server, and connect through it with the token."""
    authority, line, answers = Authority(now=datetime.now(UTC)), BreakableTransport(inner), Answers()
    (folder / "ca.crt").write_bytes(authority.certificate)
    write_token(folder, token)
    async with Gateway(line, tls=server_context(authority.server(), folder)) as gateway:
        connection = await InCluster(host="127.0.0.1", port=str(gateway.port), folder=folder).load()
        async with HttpTransport(connection, on_response=answers.on_response) as transport:
            yield PodConnection(transport=transport, line=line, answers=answers, folder=folder)
            # A blocked gateway would not close.
            line.mend()
