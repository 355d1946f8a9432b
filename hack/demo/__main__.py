"""`python -m hack.demo`: upgrade a simulated cluster and show the progress."""

from __future__ import annotations

import sys

from hack.cluster.program import utc_now
from hack.demo.options import parse
from hack.demo.program import run
from upgrade_manager.runtime.logging import LogFormat, configure_logging

if __name__ == "__main__":
    # Warnings about the rebooting API server would disturb the display.
    configure_logging(level="error", log_format=LogFormat.AUTO, stream=sys.stderr, now=utc_now)
    sys.exit(run(parse()))
