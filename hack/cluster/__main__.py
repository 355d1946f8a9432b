"""`python -m hack.cluster`: a simulated Harvester cluster for demos, kubectl and any upgrade manager."""

from __future__ import annotations

import asyncio
import errno
import signal
import sys
from typing import TYPE_CHECKING

from hack import scenario as scenarios
from hack.cluster.options import parse
from hack.cluster.program import cluster, utc_now
from hack.control_plane.assets import AssetsError
from hack.control_plane.control_plane import ControlPlaneError
from upgrade_manager.runtime.logging import LogFormat, configure_logging

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hack.cluster.options import Options
    from hack.scenario import Scenario

_FAILED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until a signal and return the exit code."""
    options = parse(arguments)
    # Standard output is for the ready line.
    configure_logging(level="warning", log_format=LogFormat.AUTO, stream=sys.stderr, now=utc_now)
    try:
        scenario = scenarios.load(options.scenario)
    except scenarios.ScenarioError as error:
        return _fail(str(error))
    error_text = ""
    try:
        asyncio.run(_serve(options, scenario))
    except* OSError as group:
        error_text = _os_error(_first(group), options)
    except* (AssetsError, ControlPlaneError) as group:
        error_text = str(_first(group))
    return _fail(error_text) if error_text else 0


async def _serve(options: Options, scenario: Scenario) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with cluster(options, scenario) as running:
        print(
            f"ready scenario={scenario.name} server={running.api_url} "
            f"kubeconfig={options.kubeconfig} repo-url={running.repo_url}",
            flush=True,
        )
        await stop.wait()


def _os_error(error: BaseException, options: Options) -> str:
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return f"--port {options.port} is in use. Set another port"
    return f"the cluster cannot be started: {error}"


def _first(error: BaseException) -> BaseException:
    """Return the first error inside nested exception groups."""
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def _fail(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    return _FAILED


if __name__ == "__main__":
    sys.exit(main())
