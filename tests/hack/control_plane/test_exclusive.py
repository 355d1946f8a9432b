"""One provisioning at a time."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Self

import pytest

from hack.control_plane.exclusive import exclusive

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

#: Takes the lock named on the command line, says so, and keeps it until its input ends.
HOLDER = """
import pathlib, sys
from hack.control_plane.exclusive import exclusive
with exclusive(pathlib.Path(sys.argv[1]), waiting=lambda: print("waiting", flush=True)):
    print("mine", flush=True)
    sys.stdin.read()
"""


class Holder:
    """Another process with the lock."""

    def __init__(self, path: Path) -> None:
        command = [sys.executable, "-c", HOLDER, str(path)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603  # ours

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "lock"


@pytest.fixture
def holder(lock: Path) -> Iterator[Holder]:
    with Holder(lock) as one:
        assert one.line() == "mine"
        yield one


def mine(lock: Path) -> AbstractContextManager[None]:
    return exclusive(lock, waiting=lambda: pytest.fail("nobody has it"))


class TestExclusive:
    def test_nobody_waits_for_a_lock_that_nobody_has(self, lock: Path) -> None:
        for _ in range(2):
            with mine(lock):
                assert lock.exists()

    def test_the_second_one_says_that_it_waits_and_then_gets_it(self, lock: Path, holder: Holder) -> None:
        with Holder(lock) as second:
            assert second.line() == "waiting"
            holder.process.communicate()
            assert second.line() == "mine"

    def test_one_that_was_killed_has_it_no_more(self, lock: Path, holder: Holder) -> None:
        holder.process.kill()
        holder.process.communicate()
        with mine(lock):
            pass
