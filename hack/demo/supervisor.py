"""Cleans up after a demo that was killed: `python supervisor.py FOLDER`.

The process leads the group of the demo's children. Its standard input ends with the demo: it then sends the group
SIGTERM, removes the folder, and sends the group, itself included, SIGKILL.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time

#: Seconds from SIGTERM to SIGKILL.
STOP_TIMEOUT = 3.0


def main(folder: str) -> None:
    """Wait for the end of the demo, and clean up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    os.killpg(0, signal.SIGTERM)
    time.sleep(STOP_TIMEOUT)
    shutil.rmtree(folder, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1])
