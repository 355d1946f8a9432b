"""`python -m hack.demo`: upgrade a simulated cluster and show the progress."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Run the demo and return the exit status."""
    # First of all: the imports take a second.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    from hack.cluster.program import utc_now  # noqa: PLC0415  # after the handlers
    from hack.demo.options import accelerated, parse  # noqa: PLC0415
    from hack.demo.program import run  # noqa: PLC0415
    from upgrade_manager.runtime.logging import LogFormat, configure_logging  # noqa: PLC0415

    # Warnings about the rebooting API server would disturb the display.
    configure_logging(level="error", log_format=LogFormat.AUTO, stream=sys.stderr, now=utc_now)
    return run(accelerated(parse()))


def _stop(number: int, _: object) -> None:
    """End before anything was started."""
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
