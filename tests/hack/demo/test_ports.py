"""The ports that the demo reserves for the manager."""

from __future__ import annotations

import asyncio
import socket

import pytest

from hack.demo.ports import HOST, reserved_ports

pytestmark = pytest.mark.real_loop


async def test_reserved_port_can_be_used_again_after_a_restart() -> None:
    with reserved_ports() as ports:
        assert ports.webhook != ports.probes
        for _ in range(2):
            server = await asyncio.start_server(lambda *_: None, HOST, ports.webhook)
            server.close()
            await server.wait_closed()


def test_reserved_port_is_closed_to_others() -> None:
    with reserved_ports() as ports, socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind((HOST, ports.webhook))
