"""hack/setup.sh with a Python that logs its calls."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "hack/setup.sh"
#: Files on which the set-up depends.
INSTALLED = (*(f"requirements/{name}.txt" for name in ("run", "demo", "test", "lint", "supply")), "pyproject.toml")
#: Creates environments by copying itself; installs fail while the file `broken` exists.
PYTHON = """#!/bin/sh
case "$*" in
  *"-m venv"*)
    echo "venv" >>"$CALLS"; for last; do :; done
    rm -rf "$last"; mkdir -p "$last/bin"; cp "$0" "$last/bin/python" ;;
  *"-m pip"*)
    echo "pip $*" >>"$CALLS"; [ ! -f broken ] || exit 1
    case "$*" in *.txt*) printf 'Collecting %s\\n' a==1 b==2; echo "Installing collected packages: b, a" ;; esac ;;
  *--version*) echo "Python 3.12.0" ;;
  *"sys.exit"*) [ ! -f old ] ;;
esac
"""


@dataclass(frozen=True, slots=True)
class Tree:
    """A small copy of the repository."""

    root: Path

    @property
    def calls(self) -> list[str]:
        """Return the calls of Python since the last time."""
        log = self.root / "calls"
        found = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return found

    def set_up(self, *wanted: str) -> subprocess.CompletedProcess[str]:
        python = self.root.parent / "python"
        environment = {**os.environ, "PYTHON": str(python), "CALLS": str(self.root / "calls")}
        return subprocess.run(  # noqa: S603, PLW1510  # our own script; tests check the exit status
            ["hack/setup.sh", *wanted],  # noqa: S607
            cwd=self.root,
            env=environment,
            capture_output=True,
            text=True,
        )


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    python = tmp_path / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    root = tmp_path / "tree"
    for folder in ("hack", "requirements"):
        (root / folder).mkdir(parents=True)
    for name in INSTALLED:
        (root / name).write_text(f"{Path(name).stem}==1 \\\\\n")
    shutil.copy(SCRIPT, root / "hack/setup.sh")
    return Tree(root)


def test_first_call_installs_hashed_files_and_the_second_nothing(tree: Tree) -> None:
    assert tree.set_up().returncode == 0
    venv, locked, project = tree.calls
    assert venv == "venv"
    assert "--no-deps --require-hashes" in locked
    assert "--no-deps" in project
    assert "--editable ." in project
    again = tree.set_up()
    assert (again.returncode, again.stdout, tree.calls) == (0, "", [])


DEMO, ALL = ("run", "demo"), ("run", "demo", "test", "lint", "supply")


def installed(tree: Tree, *wanted: str) -> tuple[str, ...]:
    """Set up, and return the names of the installed lock files, none where nothing was to do."""
    assert tree.set_up(*wanted).returncode == 0
    return tuple(re.findall(r"requirements/(\w+)\.txt", " ".join(tree.calls)))


def test_demo_installs_its_own_files_and_the_rest_follows(tree: Tree) -> None:
    assert installed(tree, "demo") == DEMO
    assert installed(tree, "demo") == ()
    assert installed(tree) == ALL
    assert installed(tree, "demo") == installed(tree) == ()


@pytest.mark.parametrize(
    ("name", "by_demo", "later"), [("test", (), ALL), ("demo", DEMO, ALL), ("run", DEMO, ALL)], ids=str
)
def test_edited_lock_file_is_installed_by_both(
    tree: Tree, name: str, by_demo: tuple[str, ...], later: tuple[str, ...]
) -> None:
    installed(tree)
    file = tree.root / f"requirements/{name}.txt"
    original = file.read_text()
    file.write_text("edited==2")
    assert installed(tree, "demo") == by_demo
    assert installed(tree) == later
    file.write_text(original)
    assert installed(tree, "demo") == by_demo
    assert installed(tree) == later
    assert installed(tree, "demo") == installed(tree) == ()


def test_edit_that_only_the_demo_saw_is_undone(tree: Tree) -> None:
    installed(tree)
    file = tree.root / "requirements/run.txt"
    original = file.read_text()
    file.write_text("edited==2")
    assert installed(tree, "demo") == DEMO
    file.write_text(original)
    assert installed(tree) == ALL


def test_steps_are_printed_while_they_run(tree: Tree) -> None:
    assert tree.set_up("demo").stdout.splitlines() == [
        "set-up: creating .venv with Python 3.12.0",
        "set-up: installing 2 packages",
        "set-up: unpacking them",
        "set-up: installing the project",
        "set-up: done",
    ]


@pytest.mark.parametrize("is_update", [False, True], ids=["set-up", "update"])
def test_interrupted_installation_starts_over(tree: Tree, *, is_update: bool) -> None:
    if is_update:
        tree.set_up()
        (tree.root / "requirements/run.txt").write_text("changed")
    (tree.root / "broken").touch()
    assert tree.set_up().returncode != 0
    assert tree.calls[0] == "venv"
    (tree.root / "broken").unlink()
    assert tree.set_up().returncode == 0
    assert tree.calls[0] == "venv"


def test_without_a_usable_python_nothing_is_changed(tree: Tree) -> None:
    (tree.root / "old").touch()
    ended = tree.set_up()
    assert ended.returncode == 1
    assert "no usable Python. Needed: 3.11 to 3.14" in ended.stderr
    assert "remedy:" in ended.stderr
    assert not (tree.root / ".venv").exists()


def test_the_environment_of_another_tree_is_kept(tree: Tree) -> None:
    tree.set_up()
    assert tree.calls
    linked = Tree(tree.root.with_name("linked"))
    shutil.copytree(tree.root, linked.root, ignore=shutil.ignore_patterns(".venv", "calls"))
    (linked.root / ".venv").symlink_to(tree.root / ".venv")
    ended = linked.set_up()
    assert (ended.returncode, ended.stdout, linked.calls) == (1, "", [])
    assert ended.stderr.startswith("set-up: .venv is a link to the environment of another tree")
    assert ended.stderr.endswith("Run rm .venv first\n")
    (linked.root / ".venv").unlink()
    assert linked.set_up().returncode == 0
    assert (tree.set_up().returncode, tree.calls) == (0, [])
