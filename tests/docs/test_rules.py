"""Every rule in docs/rules is held by a test that exists; and what the index may not look like."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import rules
from tests.support.collection import collected

FOLDER = Path(__file__).parents[2] / "docs/rules"
INDEX = [
    rules.parse(path.name, path.read_text(encoding="utf-8"))
    for path in sorted(FOLDER.glob("*.md"))
    if path.name != "README.md"
]
HEAD = "| rule | held by |\n|---|---|\n"
WAITING = (
    "# API\n\n## Spec\n\n"
    + HEAD
    + "| a | `tests/a.py::test_a` |\n\n## Not yet held\n\n| rule | waits for |\n|---|---|\n"
)


@pytest.mark.timeout(300)
def test_every_rule_is_held_by_tests_that_exist(request: pytest.FixtureRequest) -> None:
    exist = {item.nodeid for item in request.session.items}
    if rules.complaints(INDEX, rules.spellings(exist)):
        exist.update(collected(rules.files(INDEX)))  # those that this run leaves out
    found = rules.complaints(INDEX, rules.spellings(exist))
    assert not found, "\n" + "\n".join(found)


def test_the_readme_lists_every_document() -> None:
    listed = re.findall(r"\]\(([^)/#]+\.md)\)", (FOLDER / "README.md").read_text(encoding="utf-8"))
    assert sorted(listed) == [document.name for document in INDEX]


def complaints(text: str, *collected: str) -> list[str]:
    return rules.complaints([rules.parse("x.md", text)], rules.spellings(collected))


def rows(*lines: str) -> str:
    return "# API\n\nWords.\n\n## Spec\n\n" + HEAD + "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "cell",
    [
        pytest.param("`tests/a/test_b.py::test_c`", id="a test"),
        pytest.param("`tests/a/test_b.py::test_d`", id="a whole function of many rows"),
        pytest.param("`tests/a/test_b.py::test_d[one]`", id="a row"),
        pytest.param("`tests/a/test_b.py::test_d[two or a\\|b, c[0]]`", id="a row with marks in its id"),
        pytest.param("`tests/a/test_b.py::test_e`", id="a test on both servers"),
        pytest.param("`tests/a/test_b.py::test_e[real]`", id="on one of the servers"),
        pytest.param("`tests/a/test_b.py::test_f[row-1]`", id="a row on both servers"),
        pytest.param("`tests/a/test_b.py::test_f[real-row-1]`", id="a row on one of the servers"),
        pytest.param("`tests/a/test_b.py::TestG::test_h[one]`", id="in a class"),
        pytest.param("`tests/a/test_b.py::test_c`, `tests/a/test_b.py::test_d[one]`", id="several"),
    ],
)
def test_a_row_names(cell: str) -> None:
    name = "tests/a/test_b.py::"
    tests = ["test_c", "test_d[one]", "test_d[two or a|b, c[0]]", "test_e[embedded]", "test_e[real]"]
    tests += ["test_f[embedded-row-1]", "test_f[real-row-1]", "TestG::test_h[one]"]
    assert complaints(rows(f"| a rule | {cell} |"), *(name + test for test in tests)) == []


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        pytest.param(
            "| a | `tests/b.py::test_x` |", "there is no test tests/b.py::test_x", id="a file without that test"
        ),
        pytest.param("| a | `tests/c.py::test_b` |", "there is no test tests/c.py::test_b", id="another file"),
        pytest.param("| a | `tests/b.py::test_b[z]` |", "there is no test tests/b.py::test_b[z]", id="an id of no row"),
        pytest.param("| a | `tests/b.py::test_c[z]` |", "there is no test tests/b.py::test_c[z]", id="an id too many"),
        pytest.param("| a | `tests/b.py::test_` |", "there is no test tests/b.py::test_", id="half a name"),
        pytest.param("| a | `tests/b.py` |", "tests/b.py is no name of a test", id="a file alone"),
        pytest.param("| a | `test_b` |", "test_b is no name of a test", id="a function alone"),
        pytest.param("| a | tests/b.py::test_b |", "is held by tests in backticks", id="without backticks"),
        pytest.param(
            "| a | see `tests/b.py::test_b[y]` |", "is held by tests in backticks", id="words beside the test"
        ),
        pytest.param("| a | `tests/b.py::test_b` `tests/b.py::test_c` |", "with commas between", id="without a comma"),
        pytest.param("| a | `tests/b.py::test_c`, `tests/b.py::test_c` |", "is named twice", id="the same test twice"),
        pytest.param("| a |  |", "a row is a rule and what holds it", id="without a test"),
        pytest.param("|  | `tests/b.py::test_b` |", "a row is a rule and what holds it", id="without a rule"),
        pytest.param("| a |", "a row is a rule and what holds it", id="one cell"),
        pytest.param("| a | `tests/b.py::test_b` | b |", "a row is a rule and what holds it", id="three cells"),
        pytest.param(
            "| a  Rule | `tests/b.py::test_c` |\n| A rule | `tests/b.py::test_b` |",
            "is said in x.md:9 already",
            id="said twice",
        ),
    ],
)
def test_a_row_is_refused(row: str, complaint: str) -> None:
    found = complaints(rows(row, "| another | `tests/b.py::test_c` |"), "tests/b.py::test_b[y]", "tests/b.py::test_c")
    assert len(found) == 1
    assert complaint in found[0]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("# API\n", "it has no rule", id="no table"),
        pytest.param("# API\n\n## Spec\n", "section 'Spec' has no rule", id="a section without a table"),
        pytest.param("# API\n\n" + HEAD, "it has no rule", id="a table without rows"),
        pytest.param("# API\n\n| a | b |\n", "a table begins with | rule | held by |", id="no head"),
        pytest.param("# API\n\n| rule | held by |\n| a | b |\n", "a table begins with", id="no line under the head"),
        pytest.param("# API\n\n| rule | waits for |\n|---|---|\n", "a table begins with", id="waiting elsewhere"),
        pytest.param(WAITING.replace("waits for", "held by"), "| rule | waits for |", id="the wrong head"),
        pytest.param(
            WAITING + "| b | part |\n\n## End\n", "'Not yet held' is the last section", id="what waits comes first"
        ),
        pytest.param(
            WAITING + "| b | `tests/a.py::test_a` |\n", "belongs to another section", id="what waits has a test"
        ),
        pytest.param(WAITING + "| a | a part |\n", "is said in x.md:7 already", id="held and waiting"),
        pytest.param(WAITING + "| b | |\n", "a row is a rule", id="it waits for nothing"),
        pytest.param(WAITING + "| b | c |\n\n## Spec\n", "section 'Spec' is there twice", id="a section twice"),
    ],
)
def test_a_document_is_refused(text: str, complaint: str) -> None:
    assert any(complaint in found for found in complaints(text, "tests/a.py::test_a"))


def test_what_is_not_held_yet_needs_no_test() -> None:
    assert complaints(WAITING + "| b | another part |\n", "tests/a.py::test_a") == []


def test_a_rule_is_said_once_in_all_documents() -> None:
    documents = [rules.parse(name, rows("| a | `tests/b.py::test_c` |")) for name in ("x.md", "y.md")]
    assert rules.complaints(documents, {"tests/b.py::test_c"}) == ["y.md:9: 'a' is said in x.md:9 already"]


def test_what_is_collected_is_what_the_files_have(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_good.py").write_text(
        "import pytest\n@pytest.mark.parametrize('x', ['a b', 'c'])\ndef test_one(x): pass\ndef helper(): pass\n"
    )
    (tmp_path / "tests/test_broken.py").write_text("def test_two(): pass\nraise OSError\n")
    names = ["tests/test_good.py", "tests/test_broken.py", "tests/test_missing.py"]
    assert collected(names, root=tmp_path) == ["tests/test_good.py::test_one[a b]", "tests/test_good.py::test_one[c]"]
