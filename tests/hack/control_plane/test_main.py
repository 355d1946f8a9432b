"""`python -m hack.control_plane` as a process: its words, its exit code, and what a signal leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hack.control_plane.pins import binaries_key

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
#: Runs the program on a machine with room on its disk.
PROGRAM = """
import collections, shutil, sys
shutil.disk_usage = lambda _: collections.namedtuple("Usage", "total used free")(0, 0, 10**12)
from hack.control_plane.__main__ import main
sys.exit(main(sys.argv[1:]))
"""
#: A Go that gets stuck in the middle of writing a program, as long as the file `stuck` says so.
GO = """#!/bin/sh
case "$*" in
    "env GOVERSION") echo go1.99.0 ;;
    "env -json"*) echo '{}' ;;
    list*) ;;
    build*)
        while [ "$1" != -o ]; do shift; done
        echo half >"$2"
        echo $$ >"$HOME/stuck.new" && mv "$HOME/stuck.new" "$HOME/stuck"
        exec sleep 60 ;;
    *) echo "go: the end of the tale" >&2; exit 1 ;;
esac
"""


@dataclass(frozen=True, slots=True)
class Desk:
    """A user with the Go above."""

    home: Path

    @property
    def cache(self) -> Path:
        return self.home / ".cache/harvester-upgrade-manager/kube"

    def start(self, *arguments: str, **environ: str) -> subprocess.Popen[str]:
        environment = {"HOME": str(self.home), "PATH": f"{self.home}:{os.environ['PATH']}", **environ}
        command = [sys.executable, "-c", PROGRAM, *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, cwd=ROOT, env=environment, text=True, **pipes)  # type: ignore[call-overload,no-any-return]  # noqa: S603  # ours

    def until_stuck(self, process: subprocess.Popen[str]) -> int:
        """The process id of the Go that is stuck."""
        while not (self.home / "stuck").exists():
            assert process.poll() is None, process.communicate()
        return int((self.home / "stuck").read_text())

    def left(self) -> list[str]:
        return sorted(path.name for path in self.cache.iterdir() if path.is_dir() and not path.name.startswith("go"))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    go = tmp_path / "go"
    go.write_text(GO)
    go.chmod(0o755)
    yield Desk(tmp_path)
    with suppress(FileNotFoundError, ProcessLookupError):
        os.kill(int((tmp_path / "stuck").read_text()), signal.SIGKILL)


def running(process: int) -> bool:
    """Whether the process is there and no zombie; only Linux tells the difference."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


class TestProgram:
    @pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda sign: sign.name)
    def test_a_signal_ends_it_and_go_and_leaves_nothing(self, desk: Desk, sign: signal.Signals) -> None:
        process = desk.start()
        go = desk.until_stuck(process)
        process.send_signal(sign)
        _, errors = process.communicate(timeout=20)
        assert (process.returncode, errors) == (
            130,
            "real-kube: interrupted; nothing half-built is left, and the next call goes on faster\n",
        )
        assert (desk.left(), running(go)) == ([], False)

    def test_killed_it_leaves_nothing_that_the_next_call_takes_for_finished(self, desk: Desk) -> None:
        process = desk.start()
        desk.until_stuck(process)
        process.kill()
        process.communicate(timeout=20)
        assert [name[:9] for name in desk.left()] == [".partial-"]
        (desk.home / "go").write_text(GO.replace("exec sleep 60", "exit 0"))
        _, errors = desk.start().communicate(timeout=20)
        assert errors.startswith("real-kube: the end of the tale: a Go module cannot be had")
        assert binaries_key() not in desk.left()
        assert desk.left() == []

    def test_what_is_wrong_is_one_line_and_exit_code_1(self, desk: Desk) -> None:
        process = desk.start(KUBEBUILDER_ASSETS=str(desk.home))
        output, errors = process.communicate(timeout=20)
        assert (process.returncode, output) == (1, "")
        assert errors.startswith(f"real-kube: KUBEBUILDER_ASSETS is {desk.home}, which has no etcd")
        assert errors.count("\n") == 1

    def test_two_at_a_time_wait_for_each_other(self, desk: Desk) -> None:
        first = desk.start()
        desk.until_stuck(first)
        second = desk.start()
        assert second.stdout is not None
        assert second.stdout.readline() == "[0:00] another process is building the same, waiting for it to end\n"
        for process in (second, first):
            process.terminate()
            process.communicate(timeout=20)

    def test_help_says_what_it_is_for(self, desk: Desk) -> None:
        output, _ = desk.start("--help").communicate(timeout=20)
        assert "KUBEBUILDER_ASSETS" in output
        assert "--lock" in output
