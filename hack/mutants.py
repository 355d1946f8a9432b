"""`make mutants MODULE=PATH`: the share of a module's mutants that its own tests kill, by mutmut.

mutmut runs in build/mutants, on a copy of the sources, so that the tree stays as it is. The tests are those of the
mirror, and those beside it that import the module (`tests_of`). CONTRIBUTING says how to read the result.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_ROOT = Path(__file__).parents[1]
_WORK = _ROOT / "build/mutants"
#: Tests of modules that have none of their name, or of which others are the better part.
OTHER_TESTS: Mapping[str, Sequence[str]] = {
    "upgrade_manager/blockers/disruption_budgets.py": ["tests/blockers/test_drains.py"],
    "upgrade_manager/facts/pod_reason.py": ["tests/blockers/test_pods.py"],
    "upgrade_manager/toolkit/images/image_import.py": ["tests/toolkit/commands/test_prepare.py"],
    "upgrade_manager/toolkit/images/node_images.py": ["tests/toolkit/commands/test_image_cleanup.py"],
}
#: The tests that mutmut selects for one mutant, by id, or whole files.
_SELECTED = pytest.StashKey[frozenset[str]]()
#: Exit codes that mutmut records: of a mutant that no test reached, and of one that was not run.
_SURVIVED, _UNREACHED, _NOT_RUN = 0, 33, None
#: A line of mutmut's output while it works.
_SPINNER = re.compile("^[\u2800-\u28ff] .*\n", re.MULTILINE)
_CONFIGURATION = """
[tool.mutmut]
source_paths = ["upgrade_manager", "webhook"]
only_mutate = ["{module}"]
also_copy = {copied}
pytest_add_cli_args_test_selection = {tests}
pytest_add_cli_args = ["-p", "hack.mutants", "-p", "no:cacheprovider", "--tier", "default"]
use_setproctitle = false
use_git_change_detection = false
track_dependencies = false
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survivor:
    """A mutant that no test noticed."""

    place: str
    change: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of one module."""

    mutants: int
    survivors: Sequence[Survivor]

    def lines(self) -> Iterator[str]:
        """Yield the survivors, and the share of the killed mutants at the end."""
        for survivor in self.survivors:
            yield f"{survivor.place}: {survivor.change}"
        killed = self.mutants - len(self.survivors)
        share = 100 * killed / self.mutants if self.mutants else 100.0
        yield f"{self.mutants} mutants, {killed} killed, {len(self.survivors)} survived: {share:.1f} %"


def main(arguments: Sequence[str] | None = None) -> int:
    """Mutate one module, print the result, and return the exit status: not 0 where its tests fail unmutated."""
    flags = _parser().parse_args(arguments)
    tests = flags.tests or tests_of(flags.module, root=_ROOT)
    if not tests:
        sys.stderr.write(f"{flags.module} has no tests: name some with --tests\n")
        return 2
    print(f"{flags.module}: {' '.join(tests)}", flush=True)
    prepare(_WORK, root=_ROOT, module=flags.module, tests=tests)
    mutmut = [sys.executable, "-m", "mutmut", "run", *flags.only]
    if flags.processes:
        mutmut += ["--max-children", str(flags.processes)]
    ran = subprocess.run(mutmut, cwd=_WORK, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(_SPINNER.sub("", ran.stdout) if ran.returncode else "\n".join(result_of(flags.module, work=_WORK).lines()))
    return ran.returncode


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make mutants", description="Mutate one module and run its own tests.")
    parser.add_argument("module", type=module_path, help="its path or dotted name")
    parser.add_argument("--tests", nargs="+", help="files of tests instead of the module's own")
    parser.add_argument("--only", default=[], nargs="+", help="patterns of mutants' names, such as '*[05]'")
    parser.add_argument("--processes", type=int, help="how many mutants are tested at a time (default: processors)")
    return parser


def module_path(name: str) -> str:
    """Return the path of a module from its path or dotted name."""
    path = name if name.endswith(".py") else name.replace(".", "/") + ".py"
    if not (_ROOT / path).is_file():
        raise argparse.ArgumentTypeError(f"{path} does not exist")
    return path


def tests_of(module: str, *, root: Path) -> Sequence[str]:
    """Return the test files of a module: the mirror's, and those beside it that import the module."""
    parts = Path(module).with_suffix("").parts
    *folders, name = parts[1:] if parts[0] == "upgrade_manager" else parts
    package, stem = ".".join(parts[:-1]), re.escape(name)
    imports = re.compile(rf"^from {re.escape(package)}(?:\.{stem} import|\ import .*\b{stem}\b)", re.MULTILINE)
    named = re.compile(rf"test_{stem}(_\w+)?")
    beside = sorted(root.joinpath("tests", *folders).glob("test_*.py"))
    own = [path for path in beside if named.fullmatch(path.stem) or imports.search(path.read_text())]
    return [*(str(path.relative_to(root)) for path in own), *OTHER_TESTS.get(module, [])]


def prepare(work: Path, *, root: Path, module: str, tests: Sequence[str]) -> None:
    """Write mutmut's configuration, beside links to the sources, which mutmut copies."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    sources = [path for path in root.iterdir() if path.name != "build" and not path.name.endswith(".egg-info")]
    sources = [path for path in sources if path.name == ".ci" or not path.name.startswith(".")]
    for path in sources:
        (work / path.name).symlink_to(path)
    (work / "pyproject.toml").unlink()
    copied = sorted(path.name for path in sources if path.name not in {"upgrade_manager", "webhook"})
    settings = _CONFIGURATION.format(module=module, copied=json.dumps(copied), tests=json.dumps(list(tests)))
    (work / "pyproject.toml").write_text((root / "pyproject.toml").read_text() + settings)


def result_of(module: str, *, work: Path) -> Result:
    """Read what mutmut recorded about a module."""
    mutated = work / "mutants" / module
    codes = json.loads(Path(f"{mutated}.meta").read_text())["exit_code_by_key"]
    survived = [key for key, code in codes.items() if code in {_SURVIVED, _UNREACHED}]
    lines = mutated.read_text().splitlines()
    spans = json.loads(Path(f"{mutated}.spans").read_text())["spans"]
    functions = {name: lines[first - 1 : last] for name, (first, last) in spans.items()}
    starts = function_lines((work / module).read_text())
    return Result(
        mutants=sum(code is not _NOT_RUN for code in codes.values()),
        survivors=[_survivor(module, key.rpartition(".")[2], functions, starts) for key in survived],
    )


def _survivor(module: str, mutant: str, functions: Mapping[str, Sequence[str]], starts: Mapping[str, int]) -> Survivor:
    function = mutant.partition("__mutmut_")[0]
    offset, before, after = change(functions[f"{function}__mutmut_orig"], functions[mutant])
    return Survivor(place=f"{module}:{starts[function] + offset}", change=f"`{before}` -> `{after}`")


def change(original: Sequence[str], mutant: Sequence[str]) -> tuple[int, str, str]:
    """Return the first lines of a function that differ, counted from its `def`, before and after."""
    before, after = (_unnumbered(lines) for lines in (original, mutant))
    for kind, first, last, start, end in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind != "equal":
            return first, " ".join(before[first:last]), " ".join(after[start:end])
    raise ValueError(before)


def _unnumbered(lines: Sequence[str]) -> Sequence[str]:
    """Return a copy of a function from its `def` on, without the number that mutmut puts into its name."""
    texts = [re.sub(r"__mutmut_(?:orig|\d+)\b", "", line).strip() for line in lines]
    while not re.match(r"(async )?def ", texts[0]):
        texts = texts[1:]
    return texts


def function_lines(source: str) -> Mapping[str, int]:
    """Return the first line of each function and method by the name that mutmut gives it."""
    found: dict[str, int] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            functions = [one for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
            found |= {f"xǁ{node.name}ǁ{one.name}": one.lineno for one in functions}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found[f"x_{node.name}"] = node.lineno
    return found


def pytest_configure(config: pytest.Config) -> None:
    """Collect whole files: pytest does not find every test by its id, and mutmut would count that as a kill."""
    config.stash[_SELECTED] = frozenset(config.args)
    config.args = list(dict.fromkeys(test.partition("::")[0] for test in config.args))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the tests that mutmut has selected."""
    selected = config.stash[_SELECTED]
    if any("::" in test for test in selected):
        items[:] = [item for item in items if item.nodeid in selected]


if __name__ == "__main__":
    sys.exit(main())
