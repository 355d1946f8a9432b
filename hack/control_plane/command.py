"""Running a program to its end, for the provisioning; the seam where its tests put a stand-in for Go and pip."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

#: Seconds between two signs of life.
_BEAT = 1.0
#: Seconds in which a program that was told to stop may still clean up.
_GRACE = 5.0


@dataclass(frozen=True, slots=True)
class Finished:
    """How a program ended, and what it said."""

    code: int
    output: str
    errors: str


class Runner(Protocol):
    """Runs programs."""

    def run(
        self, command: Sequence[str], *, cwd: Path, environ: Mapping[str, str], beat: Callable[[], None]
    ) -> Finished:
        """Wait for the program's end and call `beat` about every second; OSError where it cannot be started.

        A caller that is interrupted leaves no process behind.
        """
        ...


class SystemRunner:
    """Runs them for real, each in a session of its own, so that all of its children can be stopped with it."""

    def run(
        self, command: Sequence[str], *, cwd: Path, environ: Mapping[str, str], beat: Callable[[], None]
    ) -> Finished:
        """See Runner."""
        with subprocess.Popen(
            command,
            cwd=cwd,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process:
            try:
                return _attend(process, beat)
            except BaseException:
                _stop(process)
                raise


def _attend(process: subprocess.Popen[str], beat: Callable[[], None]) -> Finished:
    while True:
        try:
            output, errors = process.communicate(timeout=_BEAT)
        except subprocess.TimeoutExpired:
            beat()
        else:
            return Finished(process.returncode, output, errors)


def _stop(process: subprocess.Popen[str]) -> None:
    """End the whole session: politely, then not."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
            process.communicate(timeout=_GRACE)
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            return
