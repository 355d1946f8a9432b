"""Runs the control plane's processes, and kills them when the process that started it ends.

A program on the standard library alone: `python supervisor.py FOLDER`. It reads commands as JSON lines from standard
input and writes a JSON line for each. At the end of its input, which is closed however its parent ends, it kills every
process and removes the folder.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Linux's prctl(2): the signal that a process gets when its parent dies.
_PR_SET_PDEATHSIG = 1


class Supervisor:
    """The processes by name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def execute(self, command: Mapping[str, Any]) -> Mapping[str, Any]:
        """Execute one command and return the response: a pid, an exit code (null while running) or an error."""
        name = command["name"]
        if command["do"] == "start":
            return self._start(name, command["argv"], command["environ"])
        child = self._children[name]
        if command["do"] == "signal":
            child.send_signal(command["number"])
        if command["do"] == "kill":
            child.kill()
            child.wait()
        return {"code": child.poll()}

    def _start(self, name: str, argv: list[str], environ: Mapping[str, str]) -> Mapping[str, Any]:
        with (self._folder / f"{name}.log").open("ab") as log:
            try:
                child = subprocess.Popen(  # the arguments are our parent's
                    argv,
                    cwd=self._folder,
                    env=os.environ | environ,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    preexec_fn=_die_with_parent,  # noqa: PLW1509  # this process has no threads
                )
            except OSError as error:
                return {"error": f"{argv[0]}: {error.strerror}"}
        self._children[name] = child
        return {"pid": child.pid}

    def stop(self) -> None:
        """Kill every process and remove the folder."""
        for child in self._children.values():
            child.kill()
        for child in self._children.values():
            child.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def _die_with_parent() -> None:
    """Have the kernel kill this process when the supervisor is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    """Execute commands until the input ends."""
    # Signals to the terminal's group are for the parent; when it ends, so does the input.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    supervisor = Supervisor(Path(sys.argv[1]))
    try:
        for line in sys.stdin:
            print(json.dumps(supervisor.execute(json.loads(line))), flush=True)
    except BrokenPipeError:
        sys.stdout = None
    finally:
        supervisor.stop()


if __name__ == "__main__":
    main()
