from __future__ import annotations

import asyncio
import zlib

import pytest

from hack.bench import attackers
from hack.bench.attackers import Attack, Server
from hack.bench.bomb import SIZE, UNPACKED, gzip_bomb
from tests.support.programs.polling import eventually
from tests.support.webhook.attacked import Target, attacked
from webhook.server import PATH

pytestmark = pytest.mark.real_loop

#: Seconds of an attack without an end, which is stopped earlier.
LONG = 60.0


def server(target: Target, *, method: str = "GET", path: str = "/readyz") -> Server:
    return Server(port=target.server.port, is_secure=target.is_secure, method=method, path=path)


async def run_until_received(attack: Attack) -> None:
    """Run the attack to its end, or until something was received if it has none."""
    running = asyncio.create_task(attackers.run(attack))

    async def has_received() -> bool:
        return bool(attack.received)

    await eventually(has_received, seconds=LONG)
    if attack.seconds:
        running.cancel()
    await asyncio.wait([running])


@pytest.mark.parametrize(
    ("attack", "name", "path", "expected"),
    [
        ("bombs", "webhook", PATH, {"415"}),
        ("garbage", "probes", "/readyz", {"400"}),
        ("reviews", "webhook", PATH, {"200"}),
        ("tokens", "secure metrics", "/metrics", {"401", "429"}),
        ("no_tokens", "secure metrics", "/metrics", {"401", "429"}),
        ("probes", "probes", "/readyz", {"200"}),
        ("slow_bodies", "webhook", PATH, {"408"}),
    ],
)
async def test_attack_gets_the_expected_responses(attack: str, name: str, path: str, expected: set[str]) -> None:
    seconds = LONG if attack not in {"bombs", "garbage", "slow_bodies"} else 0
    async with attacked(name) as target:
        attacking = Attack(
            attack=attack,
            servers=[server(target, method="POST" if path == PATH else "GET", path=path)],
            connections=2,
            seconds=seconds,
        )
        await run_until_received(attacking)
    assert set(attacking.received) <= expected


@pytest.mark.parametrize("attack", ["slow_heads", "idle_handshakes", "connections"])
async def test_connections_are_closed_at_the_limit(attack: str) -> None:
    async with attacked("webhook") as target:
        attacking = Attack(attack=attack, servers=[server(target)], connections=80, seconds=LONG)
        await run_until_received(attacking)
    assert set(attacking.received) <= {"408", "closed", "ConnectionResetError"}


def test_bomb_unpacks_to_a_thousand_times_its_size() -> None:
    bomb = gzip_bomb()
    part = len(bomb) // 64
    unpacked = len(zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(bomb[:part]))
    assert len(bomb) == SIZE
    assert unpacked >= UNPACKED // 64 * 0.9
