"""The keyboard of a terminal whose display is redrawn."""

from __future__ import annotations

import os
import sys
import termios
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOCAL_MODES = 3


@contextmanager
def without_echo() -> Iterator[None]:
    """Do not show what is typed: the ^C of Ctrl-C would move the cursor, and the next display would start too low."""
    if sys.stdin is None or not sys.stdin.isatty() or not _is_in_foreground(sys.stdin.fileno()):
        yield
        return
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    silent = [*before]
    silent[_LOCAL_MODES] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSADRAIN, silent)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _is_in_foreground(terminal: int) -> bool:
    """Return False for a job in the background, which would be stopped if it changed its terminal."""
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        # The terminal of another session, as after setsid.
        return False
