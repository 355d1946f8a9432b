"""`make audit`: known vulnerabilities of the locked Python packages, by pip-audit.

A package index that serves no advisories, a network that does not answer, or an audit that takes too long skips the
audit, and a line says so; a known vulnerability fails it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

#: Seconds for one answer, and for all.
_ANSWER, _LIMIT = 10, 120.0


def arguments() -> list[str]:
    """Return pip-audit's arguments: it reads the lock files and resolves nothing."""
    locks = sorted((Path(__file__).parents[1] / "requirements").glob("*.txt"))
    options = ["--disable-pip", "--require-hashes", "--progress-spinner=off", "--format=json", "--desc=off"]
    return [*options, f"--timeout={_ANSWER}", *(f"--requirement={lock}" for lock in locks)]


def main() -> int:
    """Audit all lock files, print the result, and return the exit status; errors are in pip-audit's own output."""
    command = [sys.executable, "-m", "pip_audit", *arguments()]
    try:
        ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, timeout=_LIMIT)
        dependencies = json.loads(ended.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError) as error:
        print(f"audit: SKIPPED: pip-audit has no report: {error}")
        return 0
    skipped = [one["skip_reason"] for one in dependencies if "skip_reason" in one]
    known = [
        f"{one['name']} {one['version']}: {found['id']}, fixed in {found.get('fix_versions')}"
        for one in dependencies
        for found in one.get("vulns", ())
    ]
    for line in (*known, *skipped[:1]):
        print(line)
    verdict = "FAILED" if known else "passed" if len(skipped) < len(dependencies) else "SKIPPED"
    counts = f"{len(known)} known vulnerabilities, {len(skipped)} packages of {len(dependencies)} skipped"
    print(f"audit: {verdict}: {counts}")
    return int(bool(known))


if __name__ == "__main__":
    sys.exit(main())
