"""`make audit`: known vulnerabilities of the locked Python packages, by pip-audit.

A package index that serves no advisories, a network that does not answer, or an audit that takes too long skips the
audit, and a line says so; a known vulnerability fails it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

_ROOT = Path(__file__).parents[1]
#: Seconds for one answer, and for all.
_ANSWER = 10
_LIMIT = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The result of pip-audit for the lock files."""

    #: One line for each vulnerability.
    vulnerabilities: Sequence[str]
    audited: int
    #: Packages without an answer, and the first reason.
    skipped: int
    reason: str

    @property
    def verdict(self) -> str:
        """The last line of the output."""
        if self.vulnerabilities:
            return f"audit: FAILED: {len(self.vulnerabilities)} known vulnerabilities of {self._scope}"
        if not self.audited:
            return f"audit: SKIPPED: {self.reason}"
        return f"audit: passed: no known vulnerability of {self._scope}"

    @property
    def _scope(self) -> str:
        rest = f"; {self.skipped} packages SKIPPED: {self.reason}" if self.skipped else ""
        return f"{self.audited} packages{rest}"


def main() -> int:
    """Audit all lock files, print the result, and return the exit status."""
    locks = [str(path) for path in sorted((_ROOT / "requirements").glob("*.txt"))]
    found = audit([sys.executable, "-m", "pip_audit"], locks, limit=_LIMIT)
    sys.stdout.write("".join(f"{line}\n" for line in (*found.vulnerabilities, found.verdict)))
    return int(bool(found.vulnerabilities))


def audit(program: Sequence[str], locks: Sequence[str], *, limit: float) -> Audit:
    """Run pip-audit for at most `limit` seconds."""
    try:
        ended = subprocess.run(
            [*program, *arguments(locks)],
            capture_output=True,
            text=True,
            check=False,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return _nothing(f"pip-audit did not end within {limit:g} s")
    try:
        dependencies = json.loads(ended.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        lines = ended.stderr.strip().splitlines() or ["no output"]
        return _nothing(f"pip-audit returned {ended.returncode} without a report: {lines[-1][:300]}")
    return _judge(dependencies)


def arguments(locks: Sequence[str]) -> list[str]:
    """Return pip-audit's arguments: it reads the lock files and resolves nothing."""
    options = ["--disable-pip", "--require-hashes", "--progress-spinner=off", "--format=json", "--desc=off"]
    files = [argument for lock in locks for argument in ("--requirement", lock)]
    return [*options, f"--timeout={_ANSWER}", *files]


def _judge(dependencies: Sequence[dict[str, Any]]) -> Audit:
    skipped = [one["skip_reason"] for one in dependencies if "skip_reason" in one]
    return Audit(
        vulnerabilities=[
            f"{one['name']} {one['version']}: {' '.join([known['id'], *known.get('aliases', [])])}, "
            f"fixed in {', '.join(known.get('fix_versions') or ['no version yet'])}"
            for one in dependencies
            for known in one.get("vulns", ())
        ],
        audited=len(dependencies) - len(skipped),
        skipped=len(skipped),
        reason=skipped[0] if skipped else "pip-audit found no package",
    )


def _nothing(reason: str) -> Audit:
    return Audit(vulnerabilities=(), audited=0, skipped=0, reason=reason)


if __name__ == "__main__":
    sys.exit(main())
