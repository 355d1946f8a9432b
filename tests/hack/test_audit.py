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

ROOT = Path(audit.__file__).parents[1]
CLEAN = {"name": "yarl", "version": "1.25.1", "vulns": []}
VULNERABLE = {"name": "aiohttp", "version": "3.14.5", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3.14.6"]}]}
UNKNOWN = {"name": "rich", "skip_reason": "Dependency not found on PyPI and could not be audited: rich (15.0.0)"}


@pytest.mark.parametrize(
    ("dependencies", "status", "verdict"),
    [
        ([CLEAN, UNKNOWN], 0, "passed: 0 known vulnerabilities, 1 packages of 2 skipped"),
        ([UNKNOWN, VULNERABLE], 1, "FAILED: 1 known vulnerabilities, 1 packages of 2 skipped"),
        ([UNKNOWN], 0, "SKIPPED: 0 known vulnerabilities, 1 packages of 1 skipped"),
        ([], 0, "SKIPPED: 0 known vulnerabilities, 0 packages of 0 skipped"),
        (None, 0, "SKIPPED: pip-audit has no report: Expecting value: line 1 column 1 (char 0)"),
    ],
)
def test_only_a_known_vulnerability_fails_the_step(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    dependencies: list[dict[str, Any]] | None,
    status: int,
    verdict: str,
) -> None:
    report = "" if dependencies is None else json.dumps({"dependencies": dependencies})
    (tmp_path / "pip_audit.py").write_text(f"print({report!r}, end='')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(audit, "audits", lambda: [[]])
    assert audit.main() == status
    assert capsys.readouterr().out.splitlines()[-1] == f"audit: {verdict}"


def test_audit_without_a_report_hides_no_vulnerability(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    report = json.dumps({"dependencies": [VULNERABLE]})
    answer = f"import sys\nif '--requirement=known.txt' in sys.argv:\n    print({report!r}, end='')\n"
    (tmp_path / "pip_audit.py").write_text(answer)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(audit, "audits", lambda: [[Path("unknown.txt")], [Path("known.txt")]])
    assert audit.main() == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("audit: FAILED: 1 known vulnerabilities")


def test_audits_have_every_lock_of_the_repository() -> None:
    sources = [*(ROOT / "requirements").glob("*.in"), *(ROOT / "hack").rglob("requirements/*.in")]
    locks = {source.with_suffix(".txt") for source in sources}
    assert {lock for one in audit.audits() for lock in one} == locks


@pytest.mark.full
@pytest.mark.parametrize("locks", audit.audits(), ids=lambda locks: locks[0].stem)
def test_real_tool_reads_every_lock(locks: list[Path]) -> None:
    """Without the network: --dry-run collects the packages, and asks for none."""
    texts = [lock.read_text() for lock in locks]
    names = {line.partition("==")[0] for text in texts for line in text.splitlines() if re.match(r"\S+==[^;]+$", line)}
    command = [sys.executable, "-m", "pip_audit", "--dry-run", *audit.arguments(locks)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # the locked tool
    assert ended.returncode == 0, ended.stderr
    (collected,) = re.findall(r"would have audited (\d+) packages", ended.stderr)
    assert len(names) <= int(collected)
