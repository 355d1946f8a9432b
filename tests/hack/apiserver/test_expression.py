from __future__ import annotations

import pytest

from hack.apiserver.expression import ExpressionError, compiled, evaluate, uses


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("self.a + 1", 2),
        ("self.l.map(x, x * 2)", [2, 4]),
        ("self.s.lowerAscii().split(',')", ["a", "b"]),
        ("math.greatest(1, 2)", 2),
        ("has(self.nosuch)", False),
    ],
)
def test_expression_is_evaluated(source: str, value: object) -> None:
    assert evaluate(source, {"self": {"a": 1, "l": [1, 2], "s": "A,B"}}) == value


@pytest.mark.parametrize(
    ("source", "text"),
    [
        pytest.param("self.nosuch", "no such key: nosuch", id="missing field"),
        pytest.param("nosuch", "Undefined variable", id="missing variable"),
        pytest.param("1 + 'a'", "overload", id="wrong types"),
        pytest.param("self.", "Syntax error", id="a syntax error"),
    ],
)
def test_invalid_expression_is_refused(source: str, text: str) -> None:
    with pytest.raises(ExpressionError, match=text):
        evaluate(source, {"self": {}})


def test_programs_are_cached() -> None:
    assert compiled("self.a") is compiled("self.a")


def test_variables_of_an_expression_are_found() -> None:
    assert uses("self.a == oldSelf.a", "oldSelf")
    assert not uses("self.a == 'oldSelf'", "oldSelf")
