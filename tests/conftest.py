"""Fixtures of every test: virtual time unless it needs sockets, fixed random numbers, and a check for leaked tasks."""

from __future__ import annotations

import asyncio
import inspect
import io
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
import structlog
from hypothesis import settings

from hack.control_plane.control_plane import CONTROLLER_MANAGER, ControlPlane
from hack.host import disk
from tests.support import tiers
from tests.support.server.accounts import ACCOUNTS
from upgrade_manager.cli import gc_tuning
from upgrade_manager.runtime.logging import configure_logging

# A slow machine is not a failure, and every run has the same examples.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")


def _log_plainly() -> None:
    """Log tracebacks without local variables, which take rich a second to render."""
    structlog.reset_defaults()
    *processors, _ = structlog.get_config()["processors"]
    renderer = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*processors, renderer])


_log_plainly()
# As the manager does when it starts: collections take a tenth of the time of a whole upgrade.
gc_tuning.collect_less_often()
# A full disk of this machine does not fill the disk of a node.
disk.simulate()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=tiers.TIERS, default=tiers.FULL, help="the tests to run (default: full)")


def pytest_configure(config: pytest.Config) -> None:
    for marker in tiers.MARKERS:
        config.addinivalue_line("markers", marker)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return tiers.has_no_test(collection_path, config.getoption("tier")) or None


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return one worker per processor, and one more for tiers with tests that wait long for processes."""
    return (os.cpu_count() or 1) + tiers.waits_for_processes(config.getoption("tier"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tiers.select(config, items)


def pytest_asyncio_loop_factories(
    config: pytest.Config,  # noqa: ARG001  # the hook's signature
    item: pytest.Item,
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run async tests in virtual time, but those that need sockets; some on two tiers."""
    return tiers.loops(item)


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """Start the real API server, one for all of a worker's tests."""
    with ControlPlane(tiers.assets(), accounts=ACCOUNTS) as plane:
        yield plane


@pytest.fixture(scope="session")
def controlled_plane(control_plane: ControlPlane) -> ControlPlane:
    """Start the real controllers, too."""
    control_plane.start(CONTROLLER_MANAGER)
    return control_plane


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """Undo the logging set-up of a program that ran in the test; its stream is closed."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    _log_plainly()
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture(autouse=True)
def _tidy(request: pytest.FixtureRequest) -> None:
    """Check after every async test that it leaks no task."""
    if inspect.iscoroutinefunction(getattr(request.node, "obj", None)):
        request.getfixturevalue("_no_task_left")


@pytest.fixture
async def _no_task_left() -> AsyncIterator[None]:
    before = asyncio.all_tasks()
    yield
    # Cancelled tasks may end first.
    for _ in range(10):
        await asyncio.sleep(0)
    left = [repr(task.get_coro()) for task in asyncio.all_tasks() - before if task is not asyncio.current_task()]
    assert left == [], f"tasks left behind: {left}"


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Return the log, as the manager writes it."""
    stream = io.StringIO()
    configure_logging(level="info", log_format="json", stream=stream, now=lambda: datetime.now(UTC))
    yield stream
    _log_plainly()
