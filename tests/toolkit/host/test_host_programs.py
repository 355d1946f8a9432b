"""Programs of the host. A `chroot` on the PATH stands for the real one, which needs root."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs.polling import eventually
from tests.support.programs.processes import becomes_true, is_alive, started_with
from upgrade_manager.toolkit.host import host_programs
from upgrade_manager.toolkit.host.host_programs import Call, ChrootPrograms, Output, run_program
from upgrade_manager.toolkit.run.errors import BadEnvironment, ProgramFailed, ProgramTimedOut

pytestmark = pytest.mark.real_loop
SH = "/bin/sh"


def _call(script: str, *arguments: str, timeout: float = 60.0, **more: object) -> Call:
    return Call(argv=(SH, "-c", script, "sh", *arguments), timeout=timeout, **more)  # type: ignore[arg-type]


async def test_arguments_are_no_shell_words(programs: ChrootPrograms) -> None:
    output = await programs.run(_call('printf "%s\\n" "$@"', "a b", "$HOME; rm", "*"))
    assert output == Output(status=0, stdout="a b\n$HOME; rm\n*\n")


async def test_program_runs_below_the_root(programs: ChrootPrograms, tmp_path: Path) -> None:
    output = await programs.run(_call('echo "$ROOT_DIRECTORY"'))
    assert output.stdout == f"{tmp_path / 'host'}\n"


async def test_environment_is_only_what_the_call_states(
    programs: ChrootPrograms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "x")
    output = await programs.run(
        _call('echo "$PATH|$CRI_CONFIG_FILE|$SECRET_TOKEN"', environment={"CRI_CONFIG_FILE": "f"})
    )
    assert output.stdout == "/usr/sbin:/usr/bin:/sbin:/bin|f|\n"


async def test_program_without_input_gets_none(programs: ChrootPrograms) -> None:
    assert (await programs.run(_call("cat"))).stdout == ""


@pytest.mark.parametrize(
    ("script", "cause"),
    [
        pytest.param("echo one >&2; echo two >&2; exit 3", "sh returned 3: two", id="standard-error"),
        pytest.param("echo out; exit 1", "sh returned 1: out", id="standard-output"),
        pytest.param("exit 2", "sh returned 2: no output", id="no-output"),
        pytest.param("kill -9 $$", "sh returned -9: no output", id="killed"),
    ],
)
async def test_failure_has_the_last_line(programs: ChrootPrograms, script: str, cause: str) -> None:
    with pytest.raises(ProgramFailed) as raised:
        await run_program(programs, _call(script))
    assert str(raised.value) == cause


@pytest.mark.full
async def test_long_lines_and_much_output_are_cut(programs: ChrootPrograms) -> None:
    script = "yes | head -c 17000000; head -c 1100000 /dev/zero | tr '\\0' x >&2; echo >&2; echo end >&2"
    output = await programs.run(_call(script))
    assert output.last_line == "end"
    assert len(output.stdout) == 16 * 1024 * 1024


async def test_timeout_ends_the_program_and_its_children(programs: ChrootPrograms, tmp_path: Path) -> None:
    word = f"host-program-{tmp_path.name}"
    sleeper = f"{sys.executable} -S -c 'import sys, time; time.sleep(600)' {word}"
    with pytest.raises(ProgramTimedOut, match=r"^sh did not end within 0\.5 s$"):
        await programs.run(_call(f"{sleeper} & wait", timeout=0.5))
    assert becomes_true(lambda: started_with(word) == [])


@pytest.mark.parametrize("trap", ["sleep 0.5; exit", ""], ids=["is slow to end", "ignores the signal"])
async def test_no_child_outlives_the_call(
    programs: ChrootPrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trap: str
) -> None:
    monkeypatch.setattr(host_programs, "_GRACE", 2.0)
    ready, pid = tmp_path / "ready", tmp_path / "pid"
    child = f"(trap '{trap}' TERM; echo >{ready}; while true; do sleep 0.1; done) & echo $! >{pid}; wait"
    task = asyncio.create_task(programs.run(_call(child)))

    async def runs() -> bool:
        return ready.exists() and pid.exists() and pid.read_text() != ""

    await eventually(runs)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not is_alive(int(pid.read_text()))


async def test_no_child_outlives_a_program_that_fails(programs: ChrootPrograms, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    with contextlib.suppress(ProgramFailed):
        await programs.run(_call(f"(while true; do sleep 0.1; done) >/dev/null 2>&1 & echo $! >{pid}; kill -9 $$"))
    assert not is_alive(int(pid.read_text()))


async def test_cancellation_ends_the_program(programs: ChrootPrograms, tmp_path: Path) -> None:
    word = f"host-program-{tmp_path.name}"
    call = _call(f"exec {sys.executable} -S -c 'import time; time.sleep(600)' {word}")
    task = asyncio.create_task(programs.run(call))

    async def runs() -> bool:
        return bool(started_with(word))

    await eventually(runs)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert becomes_true(lambda: started_with(word) == [])


async def test_image_without_chroot_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadEnvironment, match="the program chroot is not on PATH"):
        await ChrootPrograms(tmp_path).run(_call("true"))


@pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")
async def test_real_chroot_shows_the_program_only_the_host(tmp_path: Path) -> None:
    root = tmp_path / "host"
    _copy_with_libraries("/bin/sh", root)
    (root / "marker").write_text("of the host")
    output = await ChrootPrograms(root).run(_call('read -r line </marker || :; echo "$line"; echo /*'))
    assert output.status == 0, output
    assert output.stdout.splitlines()[0] == "of the host"
    assert "/marker" in output.stdout
    assert "/proc" not in output.stdout


def _copy_with_libraries(program: str, root: Path) -> None:
    """Copy a program of this machine, and the libraries that it is linked with, to the same paths below the root."""
    command = ["ldd", program]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()  # noqa: S603  # of this machine
    for path in {program, *(word for word in found if word.startswith("/"))}:
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target, follow_symlinks=True)
