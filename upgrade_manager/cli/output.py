"""Standard output that cannot be written, as on a full disk: one line for the user instead of Python's own at the exit.

main.py ends each command by it, and session.py the commands with a cluster.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress


def accept_any_text() -> None:
    """Let standard output replace characters that its encoding lacks, as Latin-1 lacks arrows and bars."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")


def finish(status: int) -> int:
    """Write what is buffered and return the exit status: 1, after a line for the user, if that fails."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Such as `| head`.
        discard()
        return 1
    except OSError as error:
        return fail(error)
    return status


def fail(error: OSError) -> int:
    """Report that standard output cannot be written, and return the exit status."""
    discard()
    sys.stderr.write(f"upgrade-manager: standard output: {error.strerror}\n")
    return 1


def discard() -> None:
    """Lose what is buffered: Python would try to write it again at its exit, and report the error again."""
    # A test's standard output has no file.
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
