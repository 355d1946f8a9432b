"""How long a newcomer waits: a clone of the last commit, an empty home, `make demo`."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path

from hack.bench.figure import Figure

ROOT = Path(__file__).parents[2]
#: Of the environment only this, and what tells pip and TLS how this machine reaches the outside.
KEPT = ("PATH", "LANG", "TERM", "TMPDIR")
KEPT_PREFIXES = ("PIP_", "SSL_", "http_", "https_", "HTTP_", "HTTPS_", "no_proxy", "NO_PROXY")


def measure() -> list[Figure]:
    """Clone, run, and take the time of the latter; raises CalledProcessError when the demo fails."""
    with tempfile.TemporaryDirectory(prefix="upgrade-bench-") as folder:
        clone, home = Path(folder) / "clone", Path(folder) / "home"
        home.mkdir()
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        began = time.monotonic()
        subprocess.run(["make", "demo"], cwd=clone, env=_environment(home), check=True, capture_output=True)
        took = time.monotonic() - began
    return [Figure(name="make demo on a fresh clone, set-up included", value=took, unit="s", aim=90)]


def _environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in KEPT or name.startswith(KEPT_PREFIXES)}
    own = str(ROOT / ".venv")
    path = os.pathsep.join(part for part in kept.get("PATH", "").split(os.pathsep) if not part.startswith(own))
    return {**kept, "PATH": path, "HOME": str(home)}
