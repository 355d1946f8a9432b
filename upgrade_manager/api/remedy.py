"""Remedies: the actions of a user against a blocker, each with its command and the command that undoes it.

facts/ and blockers/ build them; blockers.py keeps them in `status.blockers[].remedies`, and `remedy` is their text.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

#: Remedies of one blocker.
MAX_REMEDIES = 10
#: Characters of all remedies of a blocker as one text.
MAX_REMEDY = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A field that a command changes, with its value before; advised.py records it."""

    kind: str
    namespace: str = ""
    name: str
    #: Its names, separated by full stops; in brackets, the entry of a list or map: `spec.taints[KEY:EFFECT]`.
    field: str
    original: Any = None


@dataclass(frozen=True, slots=True)
class Remedy:
    """One action."""

    text: str
    _: KW_ONLY
    #: The command that does it; empty for an action without one. A command is never cut or folded.
    command: str = ""
    #: The command that gives back what the command changes; empty if nothing is to be given back.
    undo: str = ""
    #: The fields that the command changes until the undo; only in the process that advises it. Each remedy with an undo
    #: has some, which the end of the plan checks (pipeline/ending/advised_fields.py).
    changes: tuple[Change, ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.text}: {self.command}" if self.command else self.text

    def entry(self) -> dict[str, str]:
        """Return the raw entry of the status."""
        optional = {"command": self.command, "undo": self.undo}
        return {"text": self.text, **{key: value for key, value in optional.items() if value}}


def saving(read: str, file: str) -> str:
    """Return the line that saves what the command prints, for bash and zsh; it never overwrites an earlier save.

    A second save would replace the object by its absence, or by what a user has changed. A file without content is what
    a command leaves that has failed.
    """
    return f'(F={file}; [ -s $F ] && echo "$F exists: move it first" && exit 1; {read} > $F)'


def remedy_text(remedies: Sequence[Remedy]) -> str:
    """Return the actions in one line, in their order; several are numbered, which shows where a command ends."""
    actions = [action for one in remedies for action in _actions(one)]
    if len(actions) == 1:
        return actions[0]
    return " ".join(f"({number}) {action}" for number, action in enumerate(actions, 1))


def as_line(steps: Sequence[Remedy]) -> str:
    """Return steps as one line, those with commands last: a command is followed by the next number, or by nothing."""
    commands = [one for one in steps if one.command]
    return ". ".join([*(one.text for one in steps if not one.command), *([remedy_text(commands)] if commands else [])])


def fitting(remedies: Sequence[Remedy]) -> tuple[Remedy, ...]:
    """Return as many remedies as the status holds: a command that is cut would be another one."""
    kept = tuple(remedies[:MAX_REMEDIES])
    while len(kept) > 1 and len(remedy_text(kept)) > MAX_REMEDY:
        kept = kept[:-1]
    if len(remedy_text(kept)) > MAX_REMEDY:
        kept = (Remedy(kept[0].text[:MAX_REMEDY]),)
    return kept


def read_remedies(raw: object, *, text: str) -> tuple[Remedy, ...]:
    """Parse the remedies of a blocker; one that an earlier version wrote has the text alone."""
    entries = raw if isinstance(raw, list) else []
    found = tuple(_read(entries))
    return found or ((Remedy(text),) if text else ())


def _actions(remedy: Remedy) -> Iterator[str]:
    yield str(remedy)
    if remedy.undo:
        yield f"Undo it after the upgrade: {remedy.undo}"


def _read(entries: Iterable[Any]) -> Iterator[Remedy]:
    for entry in entries:
        texts = {key: entry.get(key) for key in ("text", "command", "undo")} if isinstance(entry, dict) else {}
        found = {key: value for key, value in texts.items() if isinstance(value, str)}
        if "text" in found:
            yield Remedy(found["text"], command=found.get("command", ""), undo=found.get("undo", ""))
