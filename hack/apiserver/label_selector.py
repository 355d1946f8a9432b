"""Label selectors as text: the grammar of apimachinery, and its words for what does not follow it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hack.apiserver.requirement import Requirement, number
from hack.apiserver.schema.names import label_value, qualified_name
from hack.apiserver.status import bad_request

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.apiserver.status import StatusError

#: Longer symbols before those that they begin with; a word is whatever holds no symbol and no blank.
_TOKEN = re.compile(r"\s*(?:(?P<symbol>==|!=|[=!(),<>])|(?P<word>[^\s=!(),<>]+))")
_NOT = "!"
_WORD_OPERATORS = {"in", "notin"}
_EXACT = {"=": "in", "==": "in", "!=": "notin", ">": ">", "<": "<"}
_OPERATOR_TEXT = "in, notin, =, ==, !=, gt, lt"


class _Term(Exception):
    """A term is wrong; the text says how."""


class _Tokens:
    """The tokens of a selector; behind the last one there are only empty ones."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_scan(text))
        self._position = 0

    def peek(self) -> str:
        """The next one, which stays."""
        return self._tokens[self._position] if self._position < len(self._tokens) else ""

    def take(self) -> str:
        """The next one."""
        token = self.peek()
        self._position += 1
        return token


def _scan(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(text.rstrip()):
        yield match["symbol"] or match["word"]


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """The terms of a labelSelector. Raises StatusError 400."""
    tokens = _Tokens(text)
    terms: list[Requirement] = []
    if not _begins_term(tokens.peek()):
        if tokens.peek():
            raise _refusal(tokens.peek(), "!, identifier, or 'end of string'")
        return ()
    while True:
        try:
            terms.append(_term(tokens))
        except _Term as error:
            raise bad_request(f"unable to parse requirement: {error}") from error
        behind = tokens.take()
        if not behind:
            return tuple(terms)
        if behind != ",":
            raise _refusal(behind, "',' or 'end of string'")
        if not _begins_term(tokens.peek()):
            raise _refusal(tokens.peek(), "identifier after ','")


def _refusal(found: str, expected: str) -> StatusError:
    return bad_request(f"found '{found}', expected: {expected}")


def _is_word(token: str) -> bool:
    return bool(token) and token[0] not in "=!(),<>"


def _begins_term(token: str) -> bool:
    return token == _NOT or _is_word(token)


def _term(tokens: _Tokens) -> Requirement:
    key = tokens.take()
    absent = key == _NOT
    if absent:
        key = tokens.take()
    if not _is_word(key):
        raise _Term(f"found '{key}', expected: identifier")
    _check_key(key)
    if absent:
        return Requirement(key, "!")
    if tokens.peek() in {"", ","}:
        return Requirement(key, "exists")
    operator = tokens.take()
    if operator in _WORD_OPERATORS:
        return _checked(Requirement(key, operator, _values(tokens)))
    if operator not in _EXACT:
        raise _Term(f"found '{operator}', expected: {_OPERATOR_TEXT}")
    return _checked(Requirement(key, _EXACT[operator], (_exact_value(tokens),)))


def _exact_value(tokens: _Tokens) -> str:
    if tokens.peek() in {"", ","}:
        return ""
    value = tokens.take()
    if not _is_word(value):
        raise _Term(f"found '{value}', expected: identifier")
    return value


def _values(tokens: _Tokens) -> tuple[str, ...]:
    """What stands in parentheses; nothing between two commas is the empty value."""
    opening = tokens.take()
    if opening != "(":
        raise _Term(f"found '{opening}' expected: '('")
    values = []
    while True:
        value = tokens.take() if _is_word(tokens.peek()) else ""
        behind = tokens.take()
        values.append(value)
        if behind == ")":
            return tuple(sorted(set(values)))
        if behind != ",":
            expected = "',' or ')'" if value else "',', or identifier"
            raise _Term(f"found '{behind}', expected: {expected}")


def _check_key(key: str) -> None:
    faults = qualified_name(key)
    if faults:
        raise _Term(f'<nil>: Invalid value: "{key}": {"; ".join(faults)}')


def _checked(term: Requirement) -> Requirement:
    """The term, when its values are such as labels have. Raises _Term."""
    if term.operator in {"<", ">"} and number(term.values[0]) is None:
        what = "for 'Gt', 'Lt' operators, the value must be an integer"
        raise _Term(f'values[0]: Invalid value: "{term.values[0]}": {what}')
    faults = [
        f'values[{index}][{term.key}]: Invalid value: "{value}": {"; ".join(found)}'
        for index, value in enumerate(term.values)
        if (found := label_value(value))
    ]
    if faults:
        raise _Term(faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")
    return term
