"""Which API server a test runs on: once on the embedded one, once on the real one, by the `servers` marker.

The server is chosen with the event loop, because the embedded server's time is virtual and the real one's is not.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from hack.control_plane.assets import Assets, AssetsError, find_assets
from hack.virtual_time import VirtualEventLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from _pytest.terminal import TerminalReporter

    Loops = Mapping[str, Callable[[], asyncio.AbstractEventLoop]]

EMBEDDED = "embedded"
REAL = "real"
MARKER = "servers"
#: For tests that need what is provisioned with the real server, and nothing of the embedded one.
ASSETS = "assets"
#: Under which a test's server travels from the worker to the summary.
_PROPERTY = "server"
#: Seconds; time is real there, and the machine may be busy.
_REAL_TIMEOUT = 300
#: pytest-asyncio's parameter, whose value is one of the factories below.
_LOOP = "_asyncio_loop_factory"


def _virtual_loop() -> asyncio.AbstractEventLoop:
    return VirtualEventLoop()


def _embedded_loop() -> asyncio.AbstractEventLoop:
    """For tests that need sockets on the embedded server too."""
    return asyncio.new_event_loop()


def _real_loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


def loops(item: pytest.Item) -> Loops:
    """The event loops that a test runs on; each makes it a test of its own, named after the server."""
    sockets = item.get_closest_marker("real_loop") is not None
    if item.get_closest_marker(MARKER) is not None:
        return {EMBEDDED: _embedded_loop if sockets else _virtual_loop, REAL: _real_loop}
    return {"real": _embedded_loop} if sockets else {"virtual": _virtual_loop}


def server_of(item: pytest.Item) -> str:
    """`embedded` or `real`."""
    if item.get_closest_marker(ASSETS) is not None:
        return REAL
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return REAL if parameters.get(_LOOP) is _real_loop else EMBEDDED


def sort_out(items: list[pytest.Item]) -> None:
    """Note each test's server for the summary, and leave out the real one's where there is none."""
    marked = [item for item in items if any(item.get_closest_marker(name) for name in (MARKER, ASSETS))]
    missing = _missing() if marked else ""
    for item in marked:
        server = server_of(item)
        item.user_properties.append((_PROPERTY, server))
        if server == REAL and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(_REAL_TIMEOUT))
        if server == REAL and missing:
            item.add_marker(pytest.mark.skip(reason=missing))


def assets() -> Assets:
    """The real control plane's programs. Raises AssetsError."""
    return find_assets(os.environ)


def _missing() -> str:
    try:
        assets()
    except AssetsError as error:
        return str(error)
    return ""


def tell(reporter: TerminalReporter) -> None:
    """Say in the summary how many of the tests that run on both servers ran on which."""
    counts: Counter[tuple[str, str]] = Counter()
    for outcome, reports in reporter.stats.items():
        for report in reports:
            # A test that was skipped has no call, one that failed may have more than one report.
            properties = dict(getattr(report, "user_properties", ()))
            if _PROPERTY in properties and (getattr(report, "when", "") == "call" or outcome in {"skipped", "error"}):
                counts[properties[_PROPERTY], outcome] += 1
    for server in (EMBEDDED, REAL):
        found = [f"{number} {outcome}" for (name, outcome), number in sorted(counts.items()) if name == server]
        if found:
            reporter.write_line(f"tests of both API servers, on the {server} one: {', '.join(found)}")
