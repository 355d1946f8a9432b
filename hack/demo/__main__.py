"""`python -m hack.demo`: an upgrade of a simulated cluster, for watching."""

from __future__ import annotations

import sys

from hack.demo.options import parse
from hack.demo.program import run

if __name__ == "__main__":
    sys.exit(run(parse()))
