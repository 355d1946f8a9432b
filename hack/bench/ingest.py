"""How many events a second an informer takes in, in a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys

from hack.bench.figure import Figure


def measure() -> list[Figure]:
    """Run the raw measurement; raises CalledProcessError when it fails."""
    command = [sys.executable, "-m", "hack.bench.informer"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rate = float(re.findall(r"^events_per_second=(\d+)$", output, re.MULTILINE)[0])
    return [Figure(name="informer, 5 kB objects, one core", value=rate, unit="events/s", aim=15000, at_most=False)]
