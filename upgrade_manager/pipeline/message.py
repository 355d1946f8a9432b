from __future__ import annotations

#: Characters of a condition's message, as a rule; the rest of a longer one helps nobody.
LIMIT = 1000


def sentence(text: str, *, limit: int = LIMIT) -> str:
    """Make any text fit for a condition or an event: one line, printable, of bounded length.

    Blanks and what cannot be printed (control characters, separators of lines, marks that turn the direction of
    writing) become one blank each time. The limit is for what has to be whole, such as the list of all that failed.
    """
    line = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"
