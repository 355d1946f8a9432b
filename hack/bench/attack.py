"""The manager as a process under the attacks of clients without credentials: what they cost it, and its users."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from hack.bench.attackers import (
    API_SERVER,
    MARK,
    PROMETHEUS,
    STRANGER,
    Attack,
    Server,
    connect,
    make_token,
    post,
    review,
    scrape,
)
from hack.bench.catalogue import Figure
from hack.bench.in_process import MANAGER, BenchError
from hack.bench.local_processes import local_processes
from hack.bench.process import processor_time
from hack.bench.recorder import Recorder
from hack.control_plane.certificates import Authority
from hack.control_plane.control_plane import free_port
from webhook.server import PATH

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable

    from hack.bench.local_processes import LocalProcesses
    from hack.demo.processes import Child
    from upgrade_manager.kube.transport import Request, Stream

#: Gzip bodies one after another on each port, then at once.
BOMBS, BOMBS_AT_ONCE = 20, 64
#: Seconds of the attack whose effect on the lease counts, of any other, and without one.
LONG, SHORT, IDLE = 30.0, 15.0, 10.0
GARBAGE, CONNECTIONS, SCRAPERS, RATE = 150, 120, 20, 200.0
#: Requests of users under attack, of which 99 in 100 pass.
USERS, PASS = 100, 99
#: Seconds for a review of the API server.
REVIEW_TIMEOUT = 5.0
_SLOW = ("slow_bodies", "slow_heads", "idle_handshakes", "connections")
_MS, _PERCENT, _OK = 1000.0, 100.0, 200


class TokenReviews(Recorder):
    """Records all requests, and responds to TokenReviews itself: `valid` are the tokens of a scraper."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.valid: set[str] = set()
        self.count = 0

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[Stream]:
        """Pass on what is not about a token."""
        kind = request.path.rpartition("/")[2]
        if kind not in {"tokenreviews", "subjectaccessreviews"}:
            async with super().open(request) as stream:
                yield stream
            return
        review = json.loads(request.body)
        is_valid = kind != "tokenreviews" or review["spec"]["token"] in self.valid
        self.count += kind == "tokenreviews"
        user = {"username": "prometheus", "uid": "1", "groups": []}
        yield _Reply(
            {**review, "status": {"authenticated": is_valid, "user": user if is_valid else {}, "allowed": True}}
        )


class _Reply:
    """A response with a JSON body."""

    status = 201

    def __init__(self, body: object) -> None:
        self.headers = {"content-type": "application/json"}
        self._body = json.dumps(body).encode()

    async def chunks(self) -> AsyncIterator[bytes]:
        """See Stream."""
        yield self._body


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A manager under attack."""

    local: LocalProcesses
    manager: Child
    reviews: TokenReviews
    webhook: Server
    metrics: Server
    probes: Server

    @property
    def servers(self) -> list[Server]:
        """All of them."""
        return [self.webhook, self.metrics, self.probes]

    async def attack(self, attack: str, servers: list[Server], **options: Any) -> Counter[str]:
        """Run an attack as a process; return what it received. Raises BenchError when the manager has ended."""
        fields = asdict(Attack(attack=attack, servers=servers, **options))
        fields.pop("received")
        command = (sys.executable, "-m", "hack.bench.attackers", json.dumps(fields))
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        output, _ = await process.communicate()
        if process.returncode or self.manager.process.returncode is not None:
            raise BenchError(f"{attack}: attackers {process.returncode}, manager {self.manager.process.returncode}")
        received: Counter[str] = Counter(json.loads(output))
        print(f"{attack}: {dict(received)}", file=sys.stderr)
        return received

    def processor_time(self) -> float:
        """Return the seconds of the manager so far."""
        return processor_time(self.manager.process.pid)

    def lines(self, *, since: int) -> list[dict[str, Any]]:
        """Return the log lines after that byte of the log."""
        return [json.loads(line) for line in self.manager.log.read_bytes()[since:].splitlines()]

    def log_size(self) -> int:
        """Return the bytes of the log."""
        return self.manager.log.stat().st_size

    def longest_renewal(self, *, since: float) -> float:
        """Return the most seconds between two renewals of the lease after that time of the loop."""
        of_lease = [one for one in self.local.recorder.of(MANAGER) if one.writes and "/leases" in one.request.path]
        times = [since, *(one.ended for one in of_lease if one.ended > since), asyncio.get_running_loop().time()]
        return max(later - earlier for earlier, later in pairwise(times))


def measure() -> list[Figure]:
    """Run all attacks on one manager."""
    return asyncio.run(_measured())


async def _measured() -> list[Figure]:
    async with _target() as target:
        return [
            *await _bombs(target),
            *await _garbage(target),
            *await _reviews(target),
            *await _slow(target),
            *await _tokens(target),
            await _probes(target),
        ]


def _figure(name: str, value: float, target: float, *, unit: str = "", at_most: bool = True) -> Figure:
    return Figure(name=f"attack: {name}", value=value, unit=unit, target=target, at_most=at_most)


async def _bombs(target: Target) -> list[Figure]:
    loop, figures = asyncio.get_running_loop(), []
    for server, name in zip(target.servers, ("webhook", "metrics", "probes"), strict=True):
        before = target.processor_time()
        await target.attack("bombs", [server], rounds=BOMBS)
        took = (target.processor_time() - before) / BOMBS
        figures.append(_figure(f"gzip body on the port of {name}, CPU time", _MS * took, 10, unit="ms"))
    began = loop.time()
    await asyncio.sleep(IDLE)
    idle, began = target.longest_renewal(since=began), loop.time()
    await target.attack("bombs", target.servers, connections=BOMBS_AT_ONCE, seconds=LONG)
    longest = target.longest_renewal(since=began)
    return [
        *figures,
        _figure(f"{BOMBS_AT_ONCE} gzip bodies at once, between renewals", longest, 5, unit="s"),
        _figure("the same, more than without an attack", max(longest - idle, 0), 3, unit="s"),
    ]


async def _garbage(target: Target) -> list[Figure]:
    since = target.log_size()
    await target.attack("garbage", target.servers, connections=GARBAGE)
    lines = target.lines(since=since)
    kinds = Counter((line["event"], line.get("server"), line.get("kind")) for line in lines)
    sizes = [len(line) for line in target.manager.log.read_bytes()[since:].splitlines()]
    bad = [line for line in lines if "exception" in line or MARK.decode() in str(line)]
    return [
        _figure("garbage, log lines a minute of a kind", max(kinds.values(), default=0), 20),
        _figure("garbage, longest line", max(sizes, default=0), 300, unit="bytes"),
        _figure("garbage, lines with a traceback or the client's text", len(bad), 0),
    ]


async def _reviews(target: Target) -> list[Figure]:
    since = target.log_size()
    await target.attack("reviews", [target.webhook], connections=10, rate=RATE, seconds=LONG)
    denied = [line for line in target.lines(since=since) if line["event"] == "denied"]
    nameless = [line for line in denied if line.get("peer") != STRANGER]
    return [
        _figure("reviews by a stranger, `denied` lines a minute", len(denied), 60),
        _figure("the same without the peer's address", len(nameless), 0),
    ]


async def _slow(target: Target) -> list[Figure]:
    """Review as the API server under each slow attack."""
    passed, errors, slowest = 0, 0, 0.0
    for attack in _SLOW:
        async with asyncio.TaskGroup() as group:
            running = group.create_task(target.attack(attack, [target.webhook], connections=CONNECTIONS, seconds=SHORT))
            for _ in range(USERS // len(_SLOW)):
                began = time.monotonic()
                passed += await _is_ok(target.webhook, post(PATH, review("api-server")), host=API_SERVER)
                slowest = max(slowest, time.monotonic() - began)
                await asyncio.sleep(SHORT / USERS)
        errors += sum(count for status, count in running.result().items() if status.startswith("5"))
    return [
        _figure(f"of {USERS} reviews, passed under slow clients", passed, PASS, at_most=False),
        _figure("the slowest of them", slowest, REVIEW_TIMEOUT, unit="s"),
        _figure("responses of 5xx to slow clients", errors, 0),
    ]


async def _tokens(target: Target) -> list[Figure]:
    passed, before = 0, target.reviews.count
    async with asyncio.TaskGroup() as group:
        group.create_task(target.attack("tokens", [target.metrics], connections=SCRAPERS, seconds=LONG))
        for number in range(USERS):
            token = make_token(f"prometheus-{number}")
            target.reviews.valid.add(token)
            passed += await _is_ok(target.metrics, scrape(token), host=PROMETHEUS)
            await asyncio.sleep(LONG / USERS / 2)
    made_up, before = target.reviews.count - before - USERS, target.reviews.count
    await target.attack("no_tokens", [target.metrics], connections=SCRAPERS, seconds=SHORT / 3)
    return [
        _figure(f"of {USERS} rotated tokens, passed at the first scrape", passed, PASS, at_most=False),
        _figure("TokenReviews of made-up tokens in a second", made_up / LONG, 10),
        _figure("TokenReviews of what is not a token", target.reviews.count - before, 0),
    ]


async def _probes(target: Target) -> Figure:
    """Send probes; what the manager needs without them is not counted."""

    async def share(meanwhile: Awaitable[object]) -> float:
        before, began = target.processor_time(), time.monotonic()
        await meanwhile
        return (target.processor_time() - before) / (time.monotonic() - began)

    idle = await share(asyncio.sleep(IDLE))
    busy = await share(target.attack("probes", [target.probes], connections=8, rate=RATE, seconds=SHORT))
    return _figure(f"{RATE:g} probes in a second, of a core", _PERCENT * (busy - idle), 5, unit="%")


async def _is_ok(server: Server, request: bytes, *, host: str) -> bool:
    """Return whether the response is 200, in time."""
    with suppress(OSError, EOFError):
        async with asyncio.timeout(REVIEW_TIMEOUT):
            client = await connect(server, host=host)
            try:
                return await client.status(request) == _OK
            finally:
                client.close()
    return False


@asynccontextmanager
async def _target() -> AsyncIterator[Target]:
    """Start a cluster, and a manager with all its servers. Raises BenchError."""
    async with local_processes(scenario="three-nodes", time_scale=1, recorder=TokenReviews) as local:
        if not isinstance(local.recorder, TokenReviews):
            raise TypeError(local.recorder)
        webhook = Server(port=free_port(), is_secure=True, method="POST", path=PATH)
        metrics, probes = Server(port=free_port(), is_secure=True, path="/metrics"), Server(port=free_port())
        certificates = local.processes.folder / "certificates"
        certificates.mkdir()
        Authority(now=datetime.now(UTC)).server().write(certificates, "tls")
        manager = await local.start_manager(
            f"--webhook-bind-address=127.0.0.1:{webhook.port}",
            f"--webhook-cert-path={certificates}",
            "--leader-elect",
            f"--metrics-bind-address=127.0.0.1:{metrics.port}",
            probes=probes.port,
        )
        yield Target(
            local=local, manager=manager, reviews=local.recorder, webhook=webhook, metrics=metrics, probes=probes
        )
