"""`make mutants`: which tests belong to a module, and what is read from mutmut's records."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hack import mutants
from hack.mutants import Result, Survivor

ROOT = Path(__file__).parents[2]
SOURCE = '''"""A module."""


def double(number: int) -> int:
    """Return twice the number."""
    return number * 2


class Counter:
    """A counter."""

    async def add(
        self, *, more: bool
    ) -> int:
        return 1 if more else 2
'''
#: As mutmut writes it: each function without its comment above, and once more for each mutant.
MUTATED = '''

def x_double__mutmut_orig(number: int) -> int:
    """Return twice the number."""
    return number * 2


def x_double__mutmut_1(number: int) -> int:
    """Return twice the number."""
    return number * 3

    async def xǁCounterǁadd__mutmut_orig(
        self, *, more: bool
    ) -> int:
        return 1 if more else 2
    async def xǁCounterǁadd__mutmut_2(
        self, *, more: bool
    ) -> int:
        return 1 if more else 3
'''
SPANS = {
    "x_double__mutmut_orig": [1, 5],
    "x_double__mutmut_1": [6, 10],
    "xǁCounterǁadd__mutmut_orig": [12, 15],
    "xǁCounterǁadd__mutmut_2": [16, 19],
}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Return a folder with a module, and mutmut's records of it."""
    (tmp_path / "mutants").mkdir()
    (tmp_path / "module.py").write_text(SOURCE)
    (tmp_path / "mutants/module.py").write_text(MUTATED)
    (tmp_path / "mutants/module.py.spans").write_text(json.dumps({"version": 1, "spans": SPANS}))
    return tmp_path


def recorded(work: Path, **codes: int | None) -> Result:
    keys = {f"module.{name}": code for name, code in codes.items()}
    (work / "mutants/module.py.meta").write_text(json.dumps({"exit_code_by_key": keys}))
    return mutants.result_of("module.py", work=work)


SURVIVORS = [
    pytest.param(
        {"x_double__mutmut_1": 0}, "module.py:6", "`return number * 2` -> `return number * 3`", id="of a function"
    ),
    pytest.param(
        {"xǁCounterǁadd__mutmut_2": 33},
        "module.py:15",
        "`return 1 if more else 2` -> `return 1 if more else 3`",
        id="of a method that no test reaches",
    ),
]


@pytest.mark.parametrize(("codes", "place", "change"), SURVIVORS)
def test_a_survivor_has_its_line_and_change(work: Path, codes: dict[str, int], place: str, change: str) -> None:
    assert recorded(work, **codes) == Result(mutants=1, survivors=[Survivor(place=place, change=change)])


def test_killed_and_timed_out_mutants_are_no_survivors(work: Path) -> None:
    result = recorded(work, x_double__mutmut_1=0, a=1, b=36, c=3, skipped=None)
    assert list(result.lines()) == [
        "module.py:6: `return number * 2` -> `return number * 3`",
        "4 mutants, 3 killed, 1 survived: 75.0 %",
    ]


def test_a_module_without_mutants_has_no_survivor() -> None:
    assert list(Result(mutants=0, survivors=[]).lines()) == ["0 mutants, 0 killed, 0 survived: 100.0 %"]


def test_tests_of_a_module_are_the_mirror_and_importers(tmp_path: Path) -> None:
    folder = tmp_path / "tests/nodes"
    folder.mkdir(parents=True)
    for name, text in {
        "drain": "",
        "drain_runs": "",
        "draining": "from upgrade_manager.nodes import drainage",
        "pause": "from upgrade_manager.nodes import anomalies, drain",
        "done": "from upgrade_manager.nodes.drain import decide",
        "other": "from upgrade_manager.kube import drain",
    }.items():
        (folder / f"test_{name}.py").write_text(text)
    found = mutants.tests_of("upgrade_manager/nodes/drain.py", root=tmp_path)
    assert found == [f"tests/nodes/test_{name}.py" for name in ("done", "drain", "drain_runs", "pause")]


def test_other_tests_of_modules_exist() -> None:
    paths = {*mutants.OTHER_TESTS, *(test for tests in mutants.OTHER_TESTS.values() for test in tests)}
    assert [path for path in paths if not (ROOT / path).is_file()] == []


@pytest.mark.parametrize("name", ["upgrade_manager.nodes.drain", "upgrade_manager/nodes/drain.py"])
def test_a_module_is_named_by_path_or_dots(name: str) -> None:
    assert mutants.module_path(name) == "upgrade_manager/nodes/drain.py"


def test_an_unknown_module_ends_with_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        mutants.main(["upgrade_manager.nodes.missing"])
    assert "upgrade_manager/nodes/missing.py does not exist" in capsys.readouterr().err


def test_mutmut_works_on_links_to_the_sources(tmp_path: Path) -> None:
    root, work = tmp_path / "root", tmp_path / "work"
    for folder in ("upgrade_manager", "tests", "build", ".venv"):
        (root / folder).mkdir(parents=True)
    (root / "pyproject.toml").write_text("[project]\n")
    (work / "of an earlier run").mkdir(parents=True)
    mutants.prepare(work, root=root, module="upgrade_manager/a.py", tests=["tests/test_a.py"])
    assert sorted(path.name for path in work.iterdir()) == ["pyproject.toml", "tests", "upgrade_manager"]
    assert (work / "tests").resolve() == root / "tests"
    settings = tomllib.loads((work / "pyproject.toml").read_text())["tool"]["mutmut"]
    assert (settings["only_mutate"], settings["pytest_add_cli_args_test_selection"]) == (
        ["upgrade_manager/a.py"],
        ["tests/test_a.py"],
    )
    assert (root / "pyproject.toml").read_text() == "[project]\n"


@pytest.mark.parametrize(
    ("arguments", "files", "run"),
    [
        pytest.param(["tests/a.py"], ["tests/a.py"], ["a[\\x1b[2J]", "b"], id="whole file"),
        pytest.param(["tests/a.py::a[\\x1b[2J]"], ["tests/a.py"], ["a[\\x1b[2J]"], id="id that pytest does not find"),
        pytest.param(["tests/a.py::b", "tests/a.py::a[\\x1b[2J]"], ["tests/a.py"], ["a[\\x1b[2J]", "b"], id="both"),
    ],
)
def test_tests_of_a_mutant_are_selected_by_exact_id(arguments: list[str], files: list[str], run: list[str]) -> None:
    config: Any = SimpleNamespace(args=arguments, stash=pytest.Stash())
    items: Any = [SimpleNamespace(nodeid=f"tests/a.py::{name}") for name in ("a[\\x1b[2J]", "b")]
    mutants.pytest_configure(config)
    mutants.pytest_collection_modifyitems(config, items)
    assert config.args == files
    assert [item.nodeid for item in items] == [f"tests/a.py::{name}" for name in run]
