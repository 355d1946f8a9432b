from __future__ import annotations

import pytest

from hack.apiserver.expression import ExpressionError, compiled, evaluate, uses


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("self.a + 1", 2),
        ("self.l.map(x, x * 2)", [2, 4]),
        ("self.s.lowerAscii().split(',')", ["a", "b"]),
        ("self.l.isSorted()", True),
        ("math.greatest(1, 2)", 2),
        ("has(self.nosuch)", False),
    ],
)
def test_an_expression_has_a_value(source: str, value: object) -> None:
    assert evaluate(source, {"self": {"a": 1, "l": [1, 2], "s": "A,B"}}) == value


@pytest.mark.parametrize(
    ("source", "text"),
    [
        pytest.param("self.nosuch", "no such key: nosuch", id="a field that is not there"),
        pytest.param("nosuch", "Undefined variable", id="a variable that is not there"),
        pytest.param("1 + 'a'", "overload", id="types that do not go together"),
        pytest.param("self.", "Syntax error", id="a syntax error"),
    ],
)
def test_an_expression_without_a_value(source: str, text: str) -> None:
    with pytest.raises(ExpressionError, match=text):
        evaluate(source, {"self": {}})


def test_programs_are_kept() -> None:
    assert compiled("self.a") is compiled("self.a")


def test_the_variables_of_an_expression_are_known() -> None:
    assert uses("self.a == oldSelf.a", "oldSelf")
    assert not uses("self.a == 'oldSelf'", "oldSelf")
