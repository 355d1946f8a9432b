"""Every listed rule has a test, and every marker names a listed rule."""

from __future__ import annotations

from pathlib import Path

from tests.support import rules
from tests.support.rules import UNTESTED, Rule


def test_every_rule_has_a_test_and_every_marker_a_rule() -> None:
    found = rules.errors(rules.listed(), rules.marked())
    assert not found, "\n" + "\n".join(found)


def test_errors_name_the_rule() -> None:
    listed = [Rule("api: a", "Spec"), Rule("api: b", "Spec"), Rule("api: b", "Spec"), Rule("api: d", UNTESTED)]
    assert rules.errors(listed, {"api: b": ["t"], "api: c": ["t", "u"], "api: d": ["t"]}) == [
        "api: a: has no test",
        "api: d: has a test, list it in a section of its subject",
        "api: c: not listed in tests/rules, but named by t, u",
        "api: b: listed twice",
    ]
    assert rules.errors([Rule("x" * 106, UNTESTED)], {}) == [f"{'x' * 106}: longer than 105 characters"]


def test_lists_and_markers_are_read(tmp_path: Path) -> None:
    (tmp_path / "tests/rules").mkdir(parents=True)
    (tmp_path / "tests/rules/api.txt").write_text(f"# API\n\n## Spec\na\n\n## {UNTESTED}\nb\n")
    (tmp_path / "tests/test_x.py").write_text(
        "@pytest.mark.rule('api: a')\ndef test_one(): ...\n\n"
        "class TestX:\n    @pytest.mark.parametrize('n', [pytest.param(1, marks=pytest.mark.rule('api: a', 'c'))])\n"
        "    async def test_two(self, n): ...\n"
    )
    assert rules.listed(tmp_path / "tests/rules") == [Rule("api: a", "Spec"), Rule("api: b", UNTESTED)]
    assert rules.marked(tmp_path / "tests") == {
        "api: a": ["tests/test_x.py::test_one", "tests/test_x.py::TestX::test_two"],
        "c": ["tests/test_x.py::TestX::test_two"],
    }
