"""The output and exit code of a program that has ended."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """A program's exit status and output."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """The output line by line."""
        return self.out.splitlines()

    @property
    def rows(self) -> list[list[str]]:
        """The output as cells of each line."""
        return [line.split() for line in self.lines]

    @property
    def json(self) -> Any:
        """The output parsed."""
        return json.loads(self.out)

    @property
    def line(self) -> str:
        """The manager's one line of output, on stderr."""
        assert self.out == ""
        assert self.err.count("\n") == 1, self.err
        assert "Traceback" not in self.err
        assert self.err.startswith("upgrade-manager")
        return self.err.strip()
