"""The remedies of blockers as lines to copy: a comment, the command alone on its line, and the command that undoes it.

view.py reads them; tables.py, cli/remedies.py and cli/preflight_view.py show the lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.next_steps import MAX_COMMAND
from upgrade_manager.api.remedy import Remedy, read_remedies
from upgrade_manager.api.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def shown_remedies(raw: object, *, text: str) -> tuple[Remedy, ...]:
    """Parse the remedies of a blocker; `text` is the one that earlier versions wrote alone."""
    return shown(read_remedies(raw, text=text))


def shown(remedies: Iterable[Remedy]) -> tuple[Remedy, ...]:
    """Return the remedies for a terminal."""
    return tuple(Remedy(one_line(one.text), command=_command(one.command), undo=_command(one.undo)) for one in remedies)


def _command(text: str) -> str:
    """Return the command, or "" for one that would have to be changed for a terminal, and would be another one."""
    return text if len(text) <= MAX_COMMAND and one_line(text) == text else ""


def remedy_lines(remedies: Iterable[Remedy]) -> Iterator[str]:
    """Yield the lines."""
    for one in remedies:
        yield f"# {one.text}{':' if one.command else ''}"
        if one.command:
            yield one.command
        if one.undo:
            yield f"# undo: {one.undo}"
