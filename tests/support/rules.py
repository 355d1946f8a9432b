"""The rules that the manager keeps, and the tests that hold it to them.

`tests/rules/AREA.txt` lists the rules; `@pytest.mark.rule("AREA: RULE", …)` stands at each test that fails
when the rule is broken. `make rules` prints the table.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parents[1]
LONGEST = 105
#: The heading of rules whose subject does not exist yet.
UNTESTED = "Without a test yet"


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a list of rules."""

    name: str
    section: str

    @property
    def needs_test(self) -> bool:
        """Return True if a test must hold it."""
        return self.section != UNTESTED


def listed(folder: Path = TESTS / "rules") -> list[Rule]:
    """Read the lists, in order."""
    rules = []
    for path in sorted(folder.glob("*.txt")):
        section = ""
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("#"):
                section = line.lstrip("# ")
            elif line.strip():
                rules.append(Rule(f"{path.stem}: {line.strip()}", section))
    return rules


def marked(folder: Path = TESTS) -> dict[str, list[str]]:
    """Map each rule that a marker names to the tests that carry it, without importing them."""
    tests: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("test_*.py")):
        where = path.relative_to(folder.parent)
        for test, node in _functions(ast.parse(path.read_text(encoding="utf-8"))):
            for rule in _named(node):
                tests.setdefault(rule, []).append(f"{where}::{test}")
    return tests


def _functions(tree: ast.Module | ast.ClassDef) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}::{name}", each) for name, each in _functions(node))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node


def _named(test: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    calls = [node for each in test.decorator_list for node in ast.walk(each) if isinstance(node, ast.Call)]
    markers = [call for call in calls if ast.unparse(call.func) == "pytest.mark.rule"]
    return [ast.literal_eval(argument) for call in markers for argument in call.args]


def errors(rules: list[Rule], tests: dict[str, list[str]]) -> list[str]:
    """State which rules have no test, which markers name no rule, and which lines are too long or repeated."""
    names = [rule.name for rule in rules]
    found = [f"{rule.name}: has no test" for rule in rules if rule.needs_test and rule.name not in tests]
    found += [
        f"{rule.name}: has a test, list it in a section of its subject"
        for rule in rules
        if not rule.needs_test and rule.name in tests
    ]
    found += [
        f"{name}: not listed in tests/rules, but named by {', '.join(tests[name])}"
        for name in tests
        if name not in names
    ]
    found += [f"{name}: listed twice" for name in sorted(set(names)) if names.count(name) > 1]
    return found + [f"{name}: longer than {LONGEST} characters" for name in names if len(name) > LONGEST]


def main() -> int:
    """Print the table of rules and tests, then the errors."""
    rules, tests = listed(), marked()
    for rule in rules:
        print(rule.name)
        for test in tests.get(rule.name, []):
            print(f"    {test}")
    found = errors(rules, tests)
    print(*found, sep="\n", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
