"""`make audit` with a pip-audit that answers as a test defines."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hack import audit

ROOT = Path(__file__).parents[2]
CLEAN = {"name": "yarl", "version": "1.25.1", "vulns": []}
VULNERABLE = {
    "name": "aiohttp",
    "version": "3.14.5",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["3.14.6", "3.15.0"], "aliases": ["CVE-2026-1"]}],
}
UNFIXED = {"name": "yarl", "version": "1.25.1", "vulns": [{"id": "GHSA-2", "fix_versions": [], "aliases": []}]}
UNKNOWN = {"name": "rich", "skip_reason": "Dependency not found on PyPI and could not be audited: rich (15.0.0)"}
FOUND = "aiohttp 3.14.5: PYSEC-1 CVE-2026-1, fixed in 3.14.6, 3.15.0"


def answering(folder: Path, text: str, *, status: int) -> list[str]:
    """Return the command of a pip-audit that prints the text."""
    script = folder / "pip_audit.py"
    script.write_text(
        f"import sys\nprint({text!r})\nprint('ConnectionError: x', file=sys.stderr)\nsys.exit({status})\n"
    )
    return [sys.executable, str(script)]


@pytest.mark.parametrize(
    ("dependencies", "status", "vulnerabilities", "verdict"),
    [
        pytest.param([CLEAN], 0, [], "audit: passed: no known vulnerability of 1 packages", id="none"),
        pytest.param(
            [CLEAN, VULNERABLE], 1, [FOUND], "audit: FAILED: 1 known vulnerabilities of 2 packages", id="known"
        ),
        pytest.param(
            [UNFIXED],
            1,
            ["yarl 1.25.1: GHSA-2, fixed in no version yet"],
            "audit: FAILED: 1 known vulnerabilities of 1 packages",
            id="without a fix",
        ),
        pytest.param(
            [UNKNOWN, VULNERABLE],
            1,
            [FOUND],
            f"audit: FAILED: 1 known vulnerabilities of 1 packages; 1 packages SKIPPED: {UNKNOWN['skip_reason']}",
            id="known, others without an answer",
        ),
        pytest.param(
            [CLEAN, UNKNOWN],
            0,
            [],
            f"audit: passed: no known vulnerability of 1 packages; 1 packages SKIPPED: {UNKNOWN['skip_reason']}",
            id="none, others without an answer",
        ),
        pytest.param([UNKNOWN], 0, [], f"audit: SKIPPED: {UNKNOWN['skip_reason']}", id="no answer at all"),
    ],
)
def test_verdict_follows_from_the_report(
    tmp_path: Path, dependencies: list[dict[str, Any]], status: int, vulnerabilities: list[str], verdict: str
) -> None:
    program = answering(tmp_path, json.dumps({"dependencies": dependencies, "fixes": []}), status=status)
    found = audit.audit(program, ["a.txt"], limit=60)
    assert (found.vulnerabilities, found.verdict) == (vulnerabilities, verdict)


@pytest.mark.parametrize(("dependency", "status"), [(CLEAN, 0), (VULNERABLE, 1), (UNKNOWN, 0)])
def test_only_a_known_vulnerability_fails_the_step(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, dependency: dict[str, Any], status: int
) -> None:
    answering(tmp_path, json.dumps({"dependencies": [dependency]}), status=0)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert audit.main() == status


@pytest.mark.full
def test_real_tool_reads_every_lock() -> None:
    """Without the network: --dry-run collects the packages, and asks for none."""
    locks = sorted((ROOT / "requirements").glob("*.txt"))
    assert len(locks) == len(list((ROOT / "requirements").glob("*.in")))
    names = {
        line.partition("==")[0]
        for lock in locks
        for line in lock.read_text().splitlines()
        if re.match(r"\S+==[^;]+$", line)
    }
    command = [sys.executable, "-m", "pip_audit", "--dry-run", *audit.arguments([*map(str, locks)])]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # the locked tool
    assert ended.returncode == 0, ended.stderr
    (collected,) = re.findall(r"would have audited (\d+) packages", ended.stderr)
    assert len(names) <= int(collected)


def test_report_without_packages_is_not_a_success() -> None:
    program = [sys.executable, "-c", "print('{}')".format(json.dumps({"dependencies": []}))]
    assert audit.audit(program, [], limit=60).verdict == "audit: SKIPPED: pip-audit found no package"
