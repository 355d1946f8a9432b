"""The message about all nodes' reports."""

from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.pipeline.phases.survey_reports import findings_text, nodes_with_findings

row = pytest.param


def entry(*messages: str, omitted: int = 0) -> dict[str, Any]:
    findings = [{"check": "c", "message": message} for message in messages]
    return {"ok": False, "findings": findings, **({"omitted": omitted} if omitted else {})}


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        row({}, "", id="none"),
        row({"n1": {"ok": True}}, "", id="no finding"),
        row({"n2": entry("a."), "n1": entry("a")}, "n1, n2: a (c)", id="the same on two nodes"),
        row({"n1": entry("a", "b")}, "n1: a (c); n1: b (c)", id="two on a node"),
        row({"n1": entry("a", omitted=1)}, "n1: a (c); n1: 1 more finding, see the log of its Job", id="one omitted"),
        row({"n1": {"ok": False, "omitted": 2}}, "n1: 2 findings, see the log of its Job", id="all omitted"),
        row(
            {f"n{number:02}": entry("a") for number in range(12)},
            "n00, n01, n02, n03, n04, n05, n06, n07, n08, n09 and 2 more: a (c)",
            id="on many nodes",
        ),
    ],
)
def test_findings_are_named_with_their_nodes(entries: dict[str, Any], text: str) -> None:
    assert findings_text(entries) == text


def test_text_is_bounded() -> None:
    entries = {f"node-{number:03}": entry(f"{number} {'x' * 390}") for number in range(100)}
    text = findings_text(entries)
    assert len(text) < 8100
    assert text.endswith(" more, see status.survey")


def test_nodes_with_findings_are_named() -> None:
    assert nodes_with_findings({"n1": {"ok": True}, "n2": entry("a"), "n3": {"ok": False, "omitted": 1}}) == [
        "n2",
        "n3",
    ]
