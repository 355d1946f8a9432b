"""What keeps a check from being made, as opposed to what a check finds."""

from __future__ import annotations


class Unanswered(Exception):
    """A node or an endpoint cannot be asked, or answers nothing that can be used: it is asked again, for a minute.

    `str()` is the reason, for users; it need not name who was asked.
    """
