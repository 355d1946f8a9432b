"""`python -m hack.demo`: an upgrade of a simulated cluster, for watching."""

from __future__ import annotations

import sys

from hack.cluster.program import utc_now
from hack.demo.options import parse
from hack.demo.program import run
from upgrade_manager.runtime.logging import LogFormat, configure_logging

if __name__ == "__main__":
    # What breaks when the API server reboots is not told over the picture: the picture shows it.
    configure_logging(level="error", log_format=LogFormat.AUTO, stream=sys.stderr, now=utc_now)
    sys.exit(run(parse()))
