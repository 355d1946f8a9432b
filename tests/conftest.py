"""What every test gets: virtual time unless it needs sockets, and nothing left behind."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from hack.virtualtime import VirtualEventLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "real_loop: the test needs sockets or processes, so time is real")


def pytest_asyncio_loop_factories(
    config: pytest.Config,  # noqa: ARG001  # the hook's signature
    item: pytest.Item,
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run async tests in virtual time; a test marked `real_loop` gets an ordinary loop."""
    if item.get_closest_marker("real_loop") is not None:
        return {"real": asyncio.new_event_loop}
    return {"virtual": VirtualEventLoop}
