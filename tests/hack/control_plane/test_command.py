"""Running programs, and leaving none behind."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from hack.control_plane.command import SystemRunner

#: Starts a child, writes both process ids into the file named on the command line, and stays.
PARENT = """
import os, pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
part = pathlib.Path(sys.argv[1] + ".part")
part.write_text(f"{os.getpid()} {child.pid}")
part.rename(sys.argv[1])
time.sleep(60)
"""


def run(*arguments: str, **more: object) -> tuple[int, str, str]:
    """Python with the arguments."""
    beat = more.get("beat", lambda: None)
    assert callable(beat)
    finished = SystemRunner().run([sys.executable, *arguments], cwd=Path.cwd(), environ=os.environ, beat=beat)
    return finished.code, finished.output, finished.errors


def gone(process: int) -> bool:
    """Dead, or waiting for whoever adopted it to notice."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


class TestSystemRunner:
    def test_it_tells_the_end_and_what_was_said(self) -> None:
        program = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
        assert run("-c", program) == (3, "out\n", "err\n")

    def test_a_program_that_is_not_there_is_an_os_error(self) -> None:
        with pytest.raises(FileNotFoundError):
            SystemRunner().run(["/nowhere/go"], cwd=Path.cwd(), environ={}, beat=lambda: None)

    @pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
    def test_an_interrupted_one_leaves_no_process(self, tmp_path: Path) -> None:
        ids = tmp_path / "ids"

        def interrupt() -> None:
            if ids.exists():
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run("-c", PARENT, str(ids), beat=interrupt)
        assert all(gone(int(process)) for process in ids.read_text().split())
