from __future__ import annotations

from pathlib import Path

import pytest

from upgrade_manager.toolkit.host.host_programs import Call, PodPrograms, run_program
from upgrade_manager.toolkit.run.errors import BadEnvironment, ProgramFailed

_SCRIPT = """#!/bin/sh
case "$1" in
fail) echo "first" >&2; echo "Error: it failed" >&2; exit 3 ;;
*) echo "$0 $* HOME=$HOME USER=$USER" ;;
esac
"""


@pytest.fixture(autouse=True)
def helm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "helm"
    program.write_text(_SCRIPT)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("USER", "root")


@pytest.mark.real_loop
async def test_program_sees_only_stated_environment(tmp_path: Path) -> None:
    call = Call(argv=("helm", "get", "a b"), timeout=10, environment={"HOME": "/work"})
    output = await run_program(PodPrograms(), call)
    assert output.stdout == f"{tmp_path}/helm get a b HOME=/work USER=\n"


@pytest.mark.real_loop
async def test_failure_has_the_last_line() -> None:
    with pytest.raises(ProgramFailed, match=r"^helm returned 3: Error: it failed$"):
        await run_program(PodPrograms(), Call(argv=("helm", "fail"), timeout=10))


@pytest.mark.real_loop
async def test_missing_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(BadEnvironment, match="the program helm is not on PATH"):
        await run_program(PodPrograms(), Call(argv=("helm",), timeout=10))
