"""The demo's last will: a small process that cleans up when the demo was killed and could not do so itself.

It leads the process group that the demo's children belong to. When its standard input ends, the demo is gone: it asks
the group to stop, removes the demo's folder, and ends the whole group, itself included.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time

#: Seconds that the group gets to stop by itself.
GRACE = 3.0


def main(folder: str) -> None:
    """Wait for the end of the demo, then clean up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    os.killpg(0, signal.SIGTERM)
    time.sleep(GRACE)
    shutil.rmtree(folder, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1])
