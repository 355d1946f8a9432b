"""A copy of the sources, in which a test follows one of CONTRIBUTING's recipes with a dummy."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.recipes.places import CRD, ROOT

_COPIED = ("upgrade_manager", "webhook", "hack", "tests", "docs", "deploy")
_TITLE = "## Adding {}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One change of a file, as a contributor makes it."""

    file: str
    #: The text that is replaced, which the file has once; empty for a new file.
    old: str = ""
    new: str


def insert(file: str, *, after: str, new: str) -> Edit:
    """Return the insertion of lines after those lines."""
    return Edit(file=file, old=f"{after}\n", new=f"{after}\n{new}\n")


class Tree:
    """The sources in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "sources"
        for name in _COPIED:
            shutil.copytree(ROOT / name, self._folder / name, symlinks=True)
        for path in ROOT.glob("*.*"):
            if path.is_file():
                shutil.copy2(path, self._folder)

    def apply(self, edits: Iterable[Edit]) -> None:
        """Change the files. Raises AssertionError for an edit that does not fit: then the recipe is outdated."""
        for edit in edits:
            path = self._folder / edit.file
            text = path.read_text(encoding="utf-8") if edit.old else ""
            assert path.exists() == bool(edit.old), edit.file
            assert not edit.old or text.count(edit.old) == 1, f"not once in {edit.file}: {edit.old}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace(edit.old, edit.new) if edit.old else edit.new, encoding="utf-8")

    def make_manifests(self) -> None:
        """Do what `make manifests` does."""
        (self._folder / CRD).write_text(self.python("upgrade_manager.api.crd"), encoding="utf-8")
        self.python("hack.chart")

    def gaps(self) -> list[str]:
        """Return the entries that are missing."""
        return self.python("tests.recipes.places").splitlines()

    def test(self, *arguments: str, **variables: str) -> None:
        """Run tests of the copy, all of which have to pass."""
        options = ("-q", "-p", "no:cacheprovider", "--show-capture=no", "--tier", "default")
        self.python("pytest", *options, *arguments, **variables)

    def read(self, file: str) -> str:
        """Return the text of a file of the copy."""
        return (self._folder / file).read_text(encoding="utf-8")

    def python(self, module: str, *arguments: str, **variables: str) -> str:
        """Run a module of the copy and return its output. Raises AssertionError with it after a failure."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
        done = subprocess.run(  # noqa: S603  # modules of this repository
            [sys.executable, "-m", module, *arguments],
            cwd=self._folder,
            env=inherited | variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def named_in(recipe: str, **placeholders: str) -> list[str]:
    """Return the files to change that the steps of a recipe in CONTRIBUTING name, in order, each once.

    `placeholders` are what stands for NAME and the like in the dummy.
    """
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    _, _, section = text.partition(_TITLE.format(recipe))
    section, _, _ = section.partition("\n## ")
    steps = "\n".join(re.findall(r"^\d+\. (?:.|\n(?! *\n|\d+\. ))*", section, flags=re.MULTILINE))
    for placeholder, value in placeholders.items():
        steps = steps.replace(placeholder, value)
    return list(dict.fromkeys(re.findall(r"`([\w./-]+\.\w+)`:", steps)))


def changed_by(edits: Iterable[Edit]) -> list[str]:
    """Return the files that the edits change, in order, each once."""
    return list(dict.fromkeys(edit.file for edit in edits))
