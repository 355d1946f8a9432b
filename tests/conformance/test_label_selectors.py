"""Label selectors: what they choose, and what is said about those that are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

OPERATORS = "in, notin, =, ==, !=, gt, lt"
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
KEY = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        pytest.param("app=x", "a", id="equal"),
        pytest.param("app==x", "a", id="equal, twice"),
        pytest.param("app!=x", "b c", id="unequal takes those without the label"),
        pytest.param("app in (x, z)", "a", id="in"),
        pytest.param("app in(x,y)", "a b", id="in without a blank"),
        pytest.param("app notin (x)", "b c", id="notin takes those without the label"),
        pytest.param("app", "a b", id="exists"),
        pytest.param("!app", "c", id="does not exist"),
        pytest.param("n>3", "b", id="greater"),
        pytest.param("n<5", "a", id="less"),
        pytest.param("app=", "", id="an empty value"),
        pytest.param("app in ()", "", id="an empty set is the empty value"),
        pytest.param("n in (3,,5)", "a b", id="an empty value in a set"),
        pytest.param(" app = x , n in (1,3) ", "a", id="two terms and blanks"),
        pytest.param("app=x,app=y", "", id="two terms that exclude each other"),
    ],
)
async def test_a_selector_chooses(api: BareApi, selector: str, chosen: str) -> None:
    path = api.path("secrets")
    for name, labels in (("a", {"app": "x", "n": "3"}), ("b", {"app": "y", "n": "5"}), ("c", {})):
        await api.admin.post(path, {"metadata": {"name": name, "labels": labels}})
    answer = await api.admin.get(path, labelSelector=selector)
    assert (answer.status, answer.names) == (200, chosen.split())


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        pytest.param("app=x=y", "found '=', expected: ',' or 'end of string'", id="two operators"),
        pytest.param("!app=x", "found '=', expected: ',' or 'end of string'", id="absent and equal"),
        pytest.param("app=x y", "found 'y', expected: ',' or 'end of string'", id="two values"),
        pytest.param("a in (b) c", "found 'c', expected: ',' or 'end of string'", id="more behind a set"),
        pytest.param("(x)", "found '(', expected: !, identifier, or 'end of string'", id="a set alone"),
        pytest.param("=x", "found '=', expected: !, identifier, or 'end of string'", id="a value alone"),
        pytest.param(",", "found ',', expected: !, identifier, or 'end of string'", id="a comma alone"),
        pytest.param("app=x,", "found '', expected: identifier after ','", id="nothing behind a comma"),
        pytest.param("app=x,,n=1", "found ',', expected: identifier after ','", id="two commas"),
        pytest.param("!", "unable to parse requirement: found '', expected: identifier", id="nothing absent"),
        pytest.param("app=!x", "unable to parse requirement: found '!', expected: identifier", id="equal not"),
        pytest.param("n>=3", "unable to parse requirement: found '=', expected: identifier", id="greater or equal"),
        pytest.param("app in x", "unable to parse requirement: found 'x' expected: '('", id="in without a set"),
        pytest.param("app in (x", "unable to parse requirement: found '', expected: ',' or ')'", id="an open set"),
        pytest.param("app x", f"unable to parse requirement: found 'x', expected: {OPERATORS}", id="no operator"),
        pytest.param("app not in (x)", f"unable to parse requirement: found 'not', expected: {OPERATORS}", id="not in"),
        pytest.param("app ! x", f"unable to parse requirement: found '!', expected: {OPERATORS}", id="not equal to"),
        pytest.param(
            "n>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be "
            "an integer",
            id="greater than a word",
        ),
        pytest.param(
            "app=-x", f'unable to parse requirement: values[0][app]: Invalid value: "-x": {VALUE}', id="a bad value"
        ),
        pytest.param(
            f"app={'x' * 64}",
            f'unable to parse requirement: values[0][app]: Invalid value: "{"x" * 64}": must be no more than 63 bytes',
            id="a long value",
        ),
        pytest.param(
            "-a=b", f'unable to parse requirement: <nil>: Invalid value: "-a": name part {KEY}', id="a bad key"
        ),
        pytest.param(
            "a/b/c=x",
            f'unable to parse requirement: <nil>: Invalid value: "a/b/c": a valid label key {KEY} with an optional DNS '
            "subdomain prefix and '/' (e.g. 'example.com/MyName')",
            id="a key with two slashes",
        ),
        pytest.param(
            "x" * 64,
            f'unable to parse requirement: <nil>: Invalid value: "{"x" * 64}": name part must be no more than 63 bytes',
            id="a long key",
        ),
    ],
)
@pytest.mark.parametrize("verb", ["GET", "DELETE"])
async def test_a_selector_that_is_none(api: BareApi, verb: str, selector: str, text: str) -> None:
    answer = await api.admin.call(verb, api.path("secrets"), labelSelector=selector)
    assert (answer.status, answer.body["reason"], answer.body["message"]) == (400, "BadRequest", text)
