"""Limits of size, and which modules a package offers to others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILE_LINES, FUNCTION_LINES, TEST_NAME, README_LINES = 400, 40, 60, 250
FOLDERS = ("upgrade_manager", "webhook", "hack", "tests")
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
PACKAGES = sorted([ROOT / "webhook", *(path.parent for path in (ROOT / "upgrade_manager").glob("*/**/__init__.py"))])


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(parsed(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def where(path: Path, node: ast.stmt) -> str:
    return f"{path.relative_to(ROOT)}:{node.lineno}"


def length(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_files_have_at_most_400_lines() -> None:
    lengths = {str(path.relative_to(ROOT)): length(path) for path in SOURCES}
    assert {name: length for name, length in lengths.items() if length > FILE_LINES} == {}


@pytest.mark.full
def test_functions_have_at_most_40_lines() -> None:
    lengths = {
        f"{where(path, node)} {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in SOURCES
        for node in functions(path)
    }
    assert {name: length for name, length in lengths.items() if length > FUNCTION_LINES} == {}


@pytest.mark.full
def test_test_names_have_at_most_60_characters() -> None:
    names = {where(path, node): node.name for path in SOURCES for node in functions(path)}
    assert [
        f"{place} {name}" for place, name in names.items() if name.startswith("test_") and len(name) > TEST_NAME
    ] == []


def lines(*folders: str) -> int:
    return sum(length(path) for path in SOURCES if any(path.is_relative_to(ROOT / folder) for folder in folders))


@pytest.mark.parametrize(
    ("folders", "share"),
    [(("hack", "tests/hack", "tests/conformance"), 0.7), (("tests",), 1.8)],
    ids=["simulator with its tests", "tests"],
)
def test_other_code_grows_no_faster_than_the_product(folders: tuple[str, ...], share: float) -> None:
    """The reasons are in docs/decisions/0061-size-relative-to-the-product.md."""
    assert lines(*folders) < share * lines("upgrade_manager", "webhook")


def test_readme_has_at_most_250_lines() -> None:
    assert length(ROOT / "README.md") <= README_LINES


def offered(package: Path) -> set[str] | None:
    """Return the submodules in a package's `__all__`; None without one."""
    for node in parsed(package / "__init__.py").body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return None


def imported(path: Path) -> Iterator[tuple[ast.stmt, str]]:
    """Yield the modules of the manager that a file imports."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            folder = ROOT / node.module.replace(".", "/")
            yield from (
                (node, f"{node.module}.{alias.name}" if folder.is_dir() else node.module) for alias in node.names
            )


def trespasses(path: Path) -> Iterator[str]:
    """Yield the imports of modules that their package does not offer."""
    for node, module in imported(path):
        target = ROOT / module.replace(".", "/")
        for package in PACKAGES:
            if package in target.parents and package not in path.parents:
                name = target.relative_to(package).parts[0]
                if name not in (offered(package) or ()):
                    yield f"{where(path, node)} {module}: not in __all__ of {package.relative_to(ROOT)}"


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: str(package.relative_to(ROOT)))
def test_a_package_names_the_modules_that_it_offers(package: Path) -> None:
    folders = {path.parent.name for path in package.glob("*/__init__.py")}
    modules = {path.stem for path in package.glob("*.py")} | folders
    assert (offered(package) or {"no __all__"}) <= modules
    assert ast.get_docstring(parsed(package / "__init__.py"))


@pytest.mark.full
def test_packages_import_only_what_others_offer() -> None:
    manager = [path for path in SOURCES if path.relative_to(ROOT).parts[0] in ("upgrade_manager", "webhook")]
    assert [line for path in manager for line in trespasses(path)] == []


#: Packages whose modules are rows of one table, which their docstring names.
TABLES = {"webhook.checks", "upgrade_manager.toolkit.commands"}
#: A module that more modules import is a library.
MAX_CALLERS = 5


def product() -> dict[str, Path]:
    paths = [path for path in SOURCES if path.relative_to(ROOT).parts[0] in ("upgrade_manager", "webhook")]
    return {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in paths}


def callers() -> dict[str, set[str]]:
    """Return, by module of the product, the modules that import it."""
    modules = product()
    found: dict[str, set[str]] = {name: set() for name in modules}
    for name, path in modules.items():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom) and node.module:
                named = {f"{node.module}.{alias.name}" for alias in node.names}
                for target in (named & modules.keys()) or ({node.module} & modules.keys()):
                    found[target].add(name)
    return found


def documentation(path: Path) -> str:
    """Return the docstrings of a module and of its classes."""
    classes = [node for node in parsed(path).body if isinstance(node, ast.ClassDef)]
    documented: list[ast.Module | ast.ClassDef] = [parsed(path), *classes]
    return " ".join(ast.get_docstring(node) or "" for node in documented)


def names_a_caller(name: str, path: Path, importers: set[str]) -> bool:
    if name.rpartition(".")[0] in TABLES or not 0 < len(importers) <= MAX_CALLERS:
        return True
    words = {part for importer in importers for part in importer.split(".")[-2:]}
    return re.search(rf"\b(?:{'|'.join(words)})\b", documentation(path)) is not None


def test_docstring_names_a_module_that_calls_it() -> None:
    found = callers()
    rows = [(name, path) for name, path in product().items() if path.name not in {"__init__.py", "__main__.py"}]
    assert [name for name, path in rows if not names_a_caller(name, path, found[name])] == []
