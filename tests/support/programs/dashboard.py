"""The panels of the Grafana dashboard, and their queries as Grafana sends them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.support.programs.kustomize import DEPLOY

DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana/dashboard.json").read_text())
PANELS: dict[str, dict[str, Any]] = {one["title"]: one for one in DASHBOARD["panels"] if one["type"] != "row"}


def expressions(title: str, **variables: str) -> list[str]:
    """Return the queries of a panel with these values of the dashboard's variables."""
    found = [target["expr"] for target in PANELS[title]["targets"]]
    return [_replaced(expression, variables) for expression in found]


def all_expressions(**variables: str) -> Iterator[tuple[str, str]]:
    """Yield the title of each panel with each of its queries."""
    for title in PANELS:
        for expression in expressions(title, **variables):
            yield title, expression


def _replaced(expression: str, variables: dict[str, str]) -> str:
    for name, value in variables.items():
        expression = expression.replace(f"${name}", value)
    assert "$" not in expression, expression
    return expression
