"""Which tests run (`--tier`) and on which API server.

| tier | holds |
|---|---|
| default | the full tier without tests marked `full`; of `thin` ones the first case, of `sampled` files one test |
| fast | of the default tier, the first case of three tests of each file, of files marked `sampled` of one |
| full | tests that need no real control plane; of `thin` ones with many cases every second |
| sweep | the full tier and tests marked `exhaustive`, with sweeps that visit every point |
| real | tests marked `servers`, on the real API server, and tests marked `assets`; of `thin` ones the first case |
| real-full | all of these, and tests marked `real_full` |
| display, image, host | tests marked so, which no other tier has; `make images-debian` runs those of the image |

A test marked `servers` exists twice. The event loop selects its server: the embedded server's time is virtual, the
real one's is not.
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
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    Loops = Mapping[str, Callable[[], asyncio.AbstractEventLoop]]

TIERS = ("fast", "default", "full", "sweep", "real", "real-full", "display", "image", "host")
FAST, DEFAULT, FULL, SWEEP, REAL, REAL_FULL, DISPLAY, IMAGE, HOST = TIERS
EMBEDDED = "embedded"
MARKERS = (
    "full: the test is left out of the default tier",
    "exhaustive: the test is in the tier `sweep` only; tests of the full tier have each of its values",
    "sampled: only the first test of the file is in the default tier",
    "thin: the default and the real tier have only the first case of the test, the full one every second of many",
    "real_loop: the test needs sockets or processes, so time is real",
    "servers: the test runs once on each API server",
    "real_full: on the real API server the test is in the tier `real-full` only",
    "long: the test takes a minute or more of real time, so that it is started first",
    "display: the test needs Chromium or tmux",
    "assets: the test runs on the real API server only, or on its files",
    "image: the test runs programs of a built image, as root in a separate network namespace",
    "host(*parts): the test runs in a virtual machine with these parts, and is skipped where one is missing",
)
#: Text of a file that has tests of the tier; any file of the others may.
_MARKS = {
    DISPLAY: ("mark.display",),
    IMAGE: ("mark.image",),
    HOST: ("mark.host",),
    REAL: ("mark.servers", "mark.assets"),
    REAL_FULL: ("mark.servers", "mark.assets"),
}
#: By tier that takes samples: tests of a file that is marked `sampled`, and of any other file.
_SAMPLES = {DEFAULT: (1, None), FAST: (1, 3)}
#: So many cases of a test marked `thin` are in the full tier at least: of a table of two each shows something else.
_FEW = 3
#: Seconds for a test in real time, which waits for the real controllers.
_REAL_TIMEOUT = 300
#: Seconds for a test that visits every point of a sweep.
_SWEEP_TIMEOUT = 3600
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
    """Return the event loops that a test runs on; each makes a test named after the server."""
    sockets = item.get_closest_marker("real_loop") is not None
    if item.get_closest_marker("servers") is not None:
        return {EMBEDDED: _embedded_loop if sockets else _virtual_loop, REAL: _real_loop}
    return {"real": _embedded_loop} if sockets else {"virtual": _virtual_loop}


def waits_for_processes(tier: str) -> bool:
    """Return True if some tests of the tier wait for minutes while other processes work."""
    return tier not in _SAMPLES


def server_of(item: pytest.Item) -> str:
    """Return `embedded` or `real`."""
    if item.get_closest_marker("assets") is not None:
        return REAL
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return REAL if parameters.get(_LOOP) is _real_loop else EMBEDDED


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of other tiers."""
    tier = config.getoption("tier")
    candidates = [item for item in items if _in_tier(item, tier)]
    selected = list(_cases(candidates, tier))
    if tier in _SAMPLES:
        selected = list(_samples(selected, tier))
    chosen = set(selected)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    # Else one process would run the last of them alone.
    items[:] = sorted(selected, key=lambda item: item.get_closest_marker("long") is None)
    if tier == SWEEP:
        for item in items:
            item.add_marker(pytest.mark.timeout(_SWEEP_TIMEOUT), append=False)
    if _is_real(tier):
        _require_assets()
        for item in items:
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(_REAL_TIMEOUT))


def _is_real(tier: str) -> bool:
    return tier in {REAL, REAL_FULL, IMAGE}


def _in_tier(item: pytest.Item, tier: str) -> bool:
    if any((item.get_closest_marker(one) is not None) != (tier == one) for one in (DISPLAY, IMAGE, HOST)):
        return False
    if tier in {IMAGE, HOST}:
        return True
    if (server_of(item) == REAL) != _is_real(tier):
        return False
    if tier not in {SWEEP, REAL_FULL} and item.get_closest_marker("exhaustive") is not None:
        return False
    if tier == REAL and item.get_closest_marker("real_full") is not None:
        return False
    return tier not in _SAMPLES or item.get_closest_marker("full") is None


def _cases(items: list[pytest.Item], tier: str) -> Iterator[pytest.Item]:
    """Yield the items without cases that the tier leaves out of tests marked `thin`, or of all tests."""
    seen: Counter[str] = Counter()
    sizes = Counter(map(_test_of, items))
    known: dict[str, list[list[object]]] = {}
    for item in items:
        test = _test_of(item)
        number, is_thin = seen[test], item.get_closest_marker("thin") is not None
        seen[test] += 1
        if tier == FAST or (tier in {DEFAULT, REAL} and is_thin):
            is_left_out = number > 0
        else:
            # Every second one of a row and of a column: the others have each value.
            is_left_out = tier == FULL and is_thin and sizes[test] > _FEW and _place(item, known) % 2 == 1
        if not is_left_out:
            yield item


def _test_of(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _place(item: pytest.Item, known: dict[str, list[list[object]]]) -> int:
    """Return the sum of the numbers of the case's row, column and so on; `known` has the values in their order."""
    place = 0
    if isinstance(item, pytest.Function):
        for mark in item.iter_markers("parametrize"):
            names = mark.args[0].split(",") if isinstance(mark.args[0], str) else mark.args[0]
            value = [item.callspec.params[name.strip()] for name in names]
            values = known.setdefault(f"{_test_of(item)} {names}", [])
            if value not in values:
                values.append(value)
            place += values.index(value)
    return place


def _samples(items: list[pytest.Item], tier: str) -> Iterator[pytest.Item]:
    """Yield the first tests of each file, as many as the tier has of it."""
    tests: dict[Path, set[str]] = {}
    of_sampled, of_others = _SAMPLES[tier]
    for item in items:
        test, seen = _test_of(item), tests.setdefault(item.path, set())
        limit = of_others if item.get_closest_marker("sampled") is None else of_sampled
        if limit is None or test in seen or len(seen) < limit:
            yield item
            seen.add(test)


def has_no_test(path: Path, tier: str) -> bool:
    """Return True if a file need not be imported: none of its tests is in the tier."""
    marks = _MARKS.get(tier, ())
    if not marks or not path.name.startswith("test_"):
        return False
    text = path.read_text(encoding="utf-8")
    return not any(mark in text for mark in marks)


def assets() -> Assets:
    """Find the real control plane's programs. Raises AssetsError."""
    return find_assets(os.environ)


def _require_assets() -> None:
    try:
        assets()
    except AssetsError as error:
        raise pytest.UsageError(str(error)) from error
