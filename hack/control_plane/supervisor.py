"""Keeps the processes of a control plane, and takes them along when whoever asked for them is gone.

A program of its own, on the standard library alone: `python supervisor.py FOLDER`. Commands come as JSON lines on
standard input, answers go out the same way. When the input ends, because its parent stopped in order or was killed,
every process is killed and the folder removed: nothing of what they stored is wanted then.
"""

from __future__ import annotations

import ctypes
import json
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

    def obey(self, command: Mapping[str, Any]) -> Mapping[str, Any]:
        """Do what a line says; the answer."""
        name = command["name"]
        match command["do"]:
            case "start":
                return self._start(name, command["argv"])
            case "kill":
                return self._kill(name)
            case _:
                return self._state(name)

    def _start(self, name: str, argv: list[str]) -> Mapping[str, Any]:
        with (self._folder / f"{name}.log").open("ab") as log:
            try:
                child = subprocess.Popen(  # the arguments are our parent's
                    argv,
                    cwd=self._folder,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    preexec_fn=_die_with_parent,  # noqa: PLW1509  # this process has no threads
                )
            except OSError as error:
                return {"error": f"{argv[0]}: {error.strerror}"}
        self._children[name] = child
        return {"pid": child.pid}

    def _kill(self, name: str) -> Mapping[str, Any]:
        child = self._children[name]
        child.kill()
        return {"code": child.wait()}

    def _state(self, name: str) -> Mapping[str, Any]:
        """How it ended; null while it runs."""
        return {"code": self._children[name].poll()}

    def end(self) -> None:
        """Leave nothing behind."""
        for child in self._children.values():
            child.kill()
        for child in self._children.values():
            child.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def _die_with_parent() -> None:
    """Even where this supervisor is killed itself."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    """Obey until the input ends."""
    # A Ctrl-C is our parent's to understand; when it goes, the input ends.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    supervisor = Supervisor(Path(sys.argv[1]))
    try:
        for line in sys.stdin:
            print(json.dumps(supervisor.obey(json.loads(line))), flush=True)
    except BrokenPipeError:
        sys.stdout = None
    finally:
        supervisor.end()


if __name__ == "__main__":
    main()
