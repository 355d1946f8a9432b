"""The next steps of a user after a failure, in `status.nextSteps`.

pipeline/ending/next_steps.py finds them at the end of a plan; the displays show them under NEXT.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import Field

from upgrade_manager.api.model import ApiModel
from upgrade_manager.api.text import bounded_line, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Entries in the status.
MAX_STEPS = 30
#: Characters of a command; a longer one is left out, because a command that is cut would be another one.
MAX_COMMAND = 4000


class NextStepStatus(ApiModel, json_schema_extra={"required": ["text"]}):
    """A step after a failure."""

    text: str = Field(default="", description="The sentence: a task, a warning, or something that is left.")
    command: str = Field(default="", description="Command that does it, in one line; absent without one.")


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStep:
    """One step: a sentence, and the command that does it."""

    text: str
    #: One line; empty without a command.
    command: str = ""

    @property
    def sentence(self) -> str:
        """The step as one text, for events and conditions; a command stands at its end."""
        return f"{self.text}: {self.command}" if self.command else self.text

    def entry(self) -> dict[str, str]:
        """Return the raw entry of the status."""
        command = one_line(self.command)
        fits = 0 < len(command) <= MAX_COMMAND
        return {"text": bounded_line(self.text), **({"command": command} if fits else {})}


def entries_of(steps: Sequence[NextStep]) -> list[dict[str, str]]:
    """Return the raw entries of the steps, as many as the status may hold."""
    return [step.entry() for step in steps[:MAX_STEPS]]
