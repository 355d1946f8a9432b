"""`make demo` as a new user runs it: in a clone of the last commit, with an empty home folder."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path

from hack.bench.catalogue import Figure

ROOT = Path(__file__).parents[2]
#: Environment variables that are kept: besides these, those that configure pip and TLS.
KEPT = ("PATH", "LANG", "TERM", "TMPDIR")
KEPT_PREFIXES = ("PIP_", "SSL_", "http_", "https_", "HTTP_", "HTTPS_", "no_proxy", "NO_PROXY")


def measure() -> list[Figure]:
    """Clone and run. Raises CalledProcessError when the demo fails."""
    with tempfile.TemporaryDirectory(prefix="upgrade-bench-") as folder:
        clone, home = Path(folder) / "clone", Path(folder) / "home"
        home.mkdir()
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        began = time.monotonic()
        subprocess.run(["make", "demo"], cwd=clone, env=_environment(home), check=True, capture_output=True)
        took = time.monotonic() - began
    return [Figure(name="make demo on a fresh clone, set-up included", value=took, unit="s", target=90)]


def _environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in KEPT or name.startswith(KEPT_PREFIXES)}
    own = str(ROOT / ".venv")
    path = os.pathsep.join(part for part in kept.get("PATH", "").split(os.pathsep) if not part.startswith(own))
    return {**kept, "PATH": path, "HOME": str(home)}
