"""`make audit`: known vulnerabilities of the locked Python packages, by pip-audit.

A package index that serves no advisories, a network that does not answer, or an audit that takes too long skips the
audit, and a line says so; a known vulnerability fails it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

#: Seconds for one answer, and for all of one audit.
_ANSWER, _LIMIT = 10, 120.0
_ROOT = Path(__file__).parents[1]


def audits() -> list[list[Path]]:
    """Return the lock files of each audit: those of the project agree on every version, the other libraries' do not."""
    peers = sorted((_ROOT / "hack" / "bench" / "peers" / "requirements").glob("*.txt"))
    return [sorted((_ROOT / "requirements").glob("*.txt")), *([peer] for peer in peers)]


def arguments(locks: list[Path]) -> list[str]:
    """Return pip-audit's arguments: it reads the lock files and resolves nothing."""
    options = ["--disable-pip", "--require-hashes", "--progress-spinner=off", "--format=json", "--desc=off"]
    return [*options, f"--timeout={_ANSWER}", *(f"--requirement={lock}" for lock in locks)]


def _audited(locks: list[Path]) -> list[dict[str, Any]]:
    """Return the packages of one audit. Raises TimeoutExpired, and ValueError without a report."""
    command = [sys.executable, "-m", "pip_audit", *arguments(locks)]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, timeout=_LIMIT)
    return list(json.loads(ended.stdout)["dependencies"])


def main() -> int:
    """Audit all lock files, print the result, and return the exit status; errors are in pip-audit's own output."""
    dependencies: list[dict[str, Any]] = []
    missing = []
    with ThreadPoolExecutor() as pool:
        for audit in [pool.submit(_audited, locks) for locks in audits()]:
            try:
                dependencies += audit.result()
            except (subprocess.TimeoutExpired, ValueError) as error:
                missing.append(error)
    skipped = [one["skip_reason"] for one in dependencies if "skip_reason" in one]
    # Several locks have the same package.
    known = sorted(
        {
            f"{one['name']} {one['version']}: {found['id']}, fixed in {found.get('fix_versions')}"
            for one in dependencies
            for found in one.get("vulns", ())
        }
    )
    if missing and not known:
        print(f"audit: SKIPPED: pip-audit has no report: {missing[0]}")
        return 0
    for line in (*known, *skipped[:1]):
        print(line)
    verdict = "FAILED" if known else "passed" if len(skipped) < len(dependencies) else "SKIPPED"
    counts = f"{len(known)} known vulnerabilities, {len(skipped)} packages of {len(dependencies)} skipped"
    print(f"audit: {verdict}: {counts}")
    return int(bool(known))


if __name__ == "__main__":
    sys.exit(main())
