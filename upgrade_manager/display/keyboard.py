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
    # A job in the background that changes its terminal is stopped.
    if sys.stdin is None or not sys.stdin.isatty() or os.tcgetpgrp(sys.stdin.fileno()) != os.getpgrp():
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
