"""The keyboard of a terminal whose display is redrawn."""

from __future__ import annotations

import os
import pty
import termios

import pytest

from upgrade_manager.display.keyboard import without_echo

LOCAL_MODES = 3


def test_terminal_of_another_session_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    controller, terminal = pty.openpty()
    with open(terminal, closefd=True) as stdin:  # noqa: PTH123  # a file descriptor
        monkeypatch.setattr("sys.stdin", stdin)
        with without_echo():
            assert termios.tcgetattr(terminal)[LOCAL_MODES] & termios.ECHO
    os.close(controller)
