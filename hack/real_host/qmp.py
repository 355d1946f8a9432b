"""QEMU's monitor: one command, one answer. machine.py pauses, resets and ends the guest by it."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

#: Seconds for an answer.
_TIMEOUT = 30.0


class MonitorError(Exception):
    """QEMU refused a command, or closed the monitor."""


class Monitor:
    """A connection to the monitor's socket; a context manager."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX)

    def __enter__(self) -> Self:
        self._socket.settimeout(_TIMEOUT)
        self._socket.connect(str(self._path))
        self._lines = self._socket.makefile("r", encoding="utf-8")
        self._lines.readline()
        self.execute("qmp_capabilities")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lines.close()
        self._socket.close()

    def execute(self, command: str, **arguments: Any) -> Any:
        """Send a command and return its result; events in between are left out. Raises MonitorError."""
        request = {"execute": command, **({"arguments": arguments} if arguments else {})}
        self._socket.sendall(json.dumps(request).encode() + b"\n")
        for line in self._lines:
            answer = json.loads(line)
            if "error" in answer:
                raise MonitorError(f"{command}: {answer['error'].get('desc')}")
            if "return" in answer:
                return answer["return"]
        raise MonitorError(f"{command}: QEMU closed its monitor")
