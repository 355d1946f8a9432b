from __future__ import annotations

import pytest

from upgrade_manager.facts.label_selectors import matches, one_of

row = pytest.param
LABELS = {"app": "a", "tier": "1"}


def expression(operator: object, key: object = "app", values: object = None) -> dict[str, object]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}


@pytest.mark.parametrize(
    "selector",
    [
        row({}, id="empty"),
        row({"matchLabels": {"app": "a", "tier": "1"}}, id="labels"),
        row(expression("In", values=["a", "b"]), id="in"),
        row(expression("NotIn", values=["b"]), id="NotIn"),
        row(expression("NotIn", key="x", values=["a"]), id="NotIn, without the label"),
        row(expression("Exists"), id="exists"),
        row(expression("DoesNotExist", key="x"), id="DoesNotExist"),
    ],
)
def test_selector_matches(selector: object) -> None:
    assert matches(selector, LABELS)


@pytest.mark.parametrize(
    "selector",
    [
        row(None, id="null"),
        row("app=a", id="wrong type"),
        row({"matchLabels": {"app": "a", "tier": "2"}}, id="another value"),
        row({"matchLabels": {"x": "a"}}, id="no such label"),
        row(expression("In", values=["b"]), id="not in"),
        row(expression("In", key="x", values=[None]), id="in, without the label"),
        row(expression("NotIn", values=["a"]), id="NotIn, but it is"),
        row(expression("Exists", key="x"), id="does not exist"),
        row(expression("DoesNotExist"), id="DoesNotExist, but it does"),
        row(expression("Gt", values=["0"]), id="unknown operator"),
        row({"matchLabels": {"app": "a"}, **expression("Exists", key="x")}, id="both must match"),
        row({"matchExpressions": [None]}, id="broken expression"),
    ],
)
def test_selector_does_not_match(selector: object) -> None:
    assert not matches(selector, LABELS)


@pytest.mark.parametrize(
    ("values", "selector"),
    [
        row(["b", "a", "b"], "l in (a,b)", id="sorted, each once"),
        row(["a", "x" * 64, "not valid", ""], "l in (a)", id="valid ones"),
        row(["x" * 64], "", id="none is valid"),
        row([], "", id="none"),
    ],
)
def test_selector_of_values(values: list[str], selector: str) -> None:
    assert one_of("l", values) == selector
