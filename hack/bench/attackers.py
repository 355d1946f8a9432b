"""Attacks on the servers of a manager on loopback, each bounded in connections and in time.

`attack` runs them as another process, so that what they cost themselves delays neither the manager's API server nor the
users whose requests are counted: `python -m hack.bench.attackers '{"attack": …}'` prints what was received.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

from hack.bench.bomb import bomb_request

if TYPE_CHECKING:
    from collections.abc import Callable

#: Loopback addresses, each another peer of the manager; its API server has 127.0.0.1.
STRANGER, API_SERVER, PROMETHEUS = "127.0.0.2", "127.0.0.1", "127.0.0.3"
#: Seconds for a response.
TIMEOUT = 10.0
_CHUNK, _LARGE = 1 << 16, 10_000
_KEPT = b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"
#: A part of a client's text that no log line may show.
MARK = b"made-up"
_GARBAGE = (
    MARK * 9000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + MARK + b"\x00\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: " + MARK + b"\r\n\r\n",
    b"GET /" + MARK * 2000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server of the manager."""

    port: int
    is_secure: bool = False
    #: A request that it knows.
    method: str = "GET"
    path: str = "/readyz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """An attack by several connections at once."""

    attack: str
    servers: list[Server]
    connections: int = 1
    #: Rounds of each connection, or seconds of all.
    rounds: int = 1
    seconds: float = 0.0
    #: Requests in a second of all connections.
    rate: float = 0.0
    received: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Client:
    """A connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def status(self, data: bytes) -> int:
        """Send a request; return the status of its response, and read the rest of it."""
        self.writer.write(data)
        async with asyncio.timeout(TIMEOUT):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
            if length:
                await self.reader.readexactly(int(length[0].partition(b":")[2]))
        return int(head.split(b" ", 2)[1])

    async def rest(self, data: bytes) -> bytes:
        """Send; return what is received until the server closes the connection."""
        received = bytearray()
        with suppress(OSError):
            self.writer.write(data)
            async with asyncio.timeout(TIMEOUT):
                while chunk := await self.reader.read(_CHUNK):
                    received += chunk
        return bytes(received)

    def close(self) -> None:
        """Close the connection at once."""
        self.writer.transport.abort()


async def connect(server: Server, *, host: str = STRANGER, begins_tls: bool = True) -> Client:
    """Connect from a loopback address. Raises OSError."""
    tls = None
    if server.is_secure and begins_tls:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    async with asyncio.timeout(TIMEOUT):
        return Client(*await asyncio.open_connection("127.0.0.1", server.port, ssl=tls, local_addr=(host, 0)))


def post(path: str, body: object) -> bytes:
    """Return a request with a JSON body."""
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


def review(name: str, *, operation: str = "CREATE") -> dict[str, Any]:
    """Return a review of a plan; that of another operation is denied at once."""
    request = {
        "uid": name,
        "kind": {"group": "management.harvesterhci.io", "version": "v1beta1", "kind": "UpgradePlan"},
        "operation": operation,
        "name": name,
        "object": {"metadata": {"name": name}, "spec": {"version": "v1.8.0"}},
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def make_token(name: str) -> str:
    """Return a token like that of a service account; its signature is random."""
    claims = {
        "iss": "https://kubernetes.default.svc.cluster.local",
        "aud": ["https://kubernetes.default.svc.cluster.local"],
        "exp": int(time.time()) + 3600,
        "iat": int(time.time()),
        "sub": f"system:serviceaccount:cattle-monitoring-system:{name}",
    }
    parts = [json.dumps({"alg": "RS256", "kid": "made-up"}).encode(), json.dumps(claims).encode(), os.urandom(256)]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def scrape(token: str) -> bytes:
    """Return a request of metrics."""
    return f"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode()


async def bombs(attack: Attack, server: Server) -> None:
    """Send a small body that unpacks to a large one."""
    client = await connect(server)
    received = await client.rest(bomb_request(server.method, server.path))
    attack.received[received[9:12].decode() or "closed"] += 1
    client.close()


async def garbage(attack: Attack, server: Server) -> None:
    """Send a request, then bytes that are none."""
    for data in _GARBAGE:
        client = await connect(server)
        await client.status(_KEPT)
        attack.received[(await client.rest(data))[9:12].decode() or "closed"] += 1
        client.close()


async def reviews(attack: Attack, server: Server) -> None:
    """Review plans on a connection that is kept."""
    await _repeat(attack, server, lambda number: post(server.path, review(f"made-up-{number}", operation="READ")))


async def tokens(attack: Attack, server: Server) -> None:
    """Scrape with another made-up token each time."""
    await _repeat(attack, server, lambda number: scrape(make_token(f"made-up-{number}")))


async def no_tokens(attack: Attack, server: Server) -> None:
    """Scrape with texts that are no token."""
    await _repeat(attack, server, lambda number: scrape(f"made-up-{number}"))


async def probes(attack: Attack, server: Server) -> None:
    """Send probes on a connection that is kept."""
    await _repeat(attack, server, lambda _: _KEPT)


async def slow_bodies(attack: Attack, server: Server) -> None:
    """Send a part of a large body."""
    head = (
        f"POST {server.path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 3000000\r\n\r\n"
    )
    await _hold(attack, server, head.encode() + b" " * _LARGE)


async def slow_heads(attack: Attack, server: Server) -> None:
    """Send a part of a head."""
    await _hold(attack, server, b"POST / HTTP/1.1\r\nHost:")


async def idle_handshakes(attack: Attack, server: Server) -> None:
    """Begin no handshake."""
    await _hold(attack, server, b"\x16\x03\x01", begins_tls=False)


async def connections(attack: Attack, server: Server) -> None:
    """Send nothing after the handshake."""
    await _hold(attack, server, b"")


async def _repeat(attack: Attack, server: Server, request: Callable[[int], bytes]) -> None:
    """Send requests one after another, at the rate if there is one."""
    client, due = await connect(server), time.monotonic()
    try:
        for number in count():
            attack.received[str(await client.status(request(number)))] += 1
            due += attack.connections / attack.rate if attack.rate else 0.0
            await asyncio.sleep(due - time.monotonic())
    finally:
        client.close()


async def _hold(attack: Attack, server: Server, data: bytes, *, begins_tls: bool = True) -> None:
    """Send and wait until the server closes the connection."""
    client = await connect(server, begins_tls=begins_tls)
    try:
        received = await client.rest(data)
        attack.received[received[9:12].decode(errors="replace") or "closed"] += 1
    finally:
        client.close()


ATTACKS = {
    one.__name__: one
    for one in (
        bombs,
        garbage,
        reviews,
        tokens,
        no_tokens,
        probes,
        slow_bodies,
        slow_heads,
        idle_handshakes,
        connections,
    )
}


async def run(attack: Attack) -> None:
    """Run the attack with all its connections, which are opened again when the server closes them."""

    async def work(server: Server) -> None:
        rounds = 0
        while attack.seconds or rounds < attack.rounds:
            try:
                await ATTACKS[attack.attack](attack, server)
            except (OSError, EOFError) as error:
                attack.received[type(error).__name__] += 1
                await asyncio.sleep(0.01)
            rounds += 1

    with suppress(TimeoutError):
        async with asyncio.timeout(attack.seconds or None), asyncio.TaskGroup() as group:
            for number in range(attack.connections):
                group.create_task(work(attack.servers[number % len(attack.servers)]))


def main() -> int:
    """Run the attack that the argument describes."""
    fields = json.loads(sys.argv[1])
    attack = Attack(**{**fields, "servers": [Server(**server) for server in fields["servers"]]})
    asyncio.run(run(attack))
    print(json.dumps(attack.received))
    return 0


if __name__ == "__main__":
    sys.exit(main())
