from __future__ import annotations

from typing import Any

import pytest
import structlog

from tests.nodes.test_node_view import observed
from tests.support.cluster.nodes import OPTIONS, POST_DRAIN, PRE, PRE_DRAIN, machine, node, secret
from upgrade_manager.nodes.anomalies import AnomalyLog

REQUESTED = {PRE_DRAIN: OPTIONS}


def logged(
    *given: dict[str, Any], plan: str = "u", single: bool = False, stale: frozenset[str] = frozenset()
) -> list[tuple[str, str]]:
    """Return what one process logs in a reconcile of each."""
    log = AnomalyLog()
    with structlog.testing.capture_logs() as lines:
        for number, one in enumerate(given):
            uid = plan or str(number)
            log.record(observed(**one), plan_uid=uid, nodes=frozenset({"n1"}), single=single, stale=stale)
    return [(line["event"], line["name"]) for line in lines]


@pytest.mark.rule(
    "nodes: a Secret without Machine is logged and not fatal",
    "nodes: a Machine without Node is logged and not fatal",
    "nodes: of two Secrets for a node the one with a pending hook is used, and logged",
    "nodes: a node that joins is logged, blocks nothing and is upgraded when its hook is pending",
    "nodes: a node that leaves is logged and blocks nothing",
)
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, [], id="no anomaly"),
        pytest.param(
            {"secrets": [secret("s", "deleted", **REQUESTED)]},
            [("pending hook on a machine-plan Secret without a Machine", "s")],
            id="a Secret without a Machine",
        ),
        pytest.param({"secrets": [secret("s", "deleted")]}, [], id="a Secret without a Machine, without a hook"),
        pytest.param(
            {"secrets": [secret("s", "m", **REQUESTED)], "machines": [machine("m")]},
            [("pending hook on a machine-plan Secret whose Machine has no node", "s")],
            id="a Machine without a node",
        ),
        pytest.param(
            {"secrets": [secret("s1", "m"), secret("s2", "m")], "machines": [machine("m", "n1")]},
            [("several machine-plan Secrets for one node", "n1")],
            id="two Secrets for one node",
        ),
        pytest.param({"nodes": [node("n1"), node("n2")]}, [("node joined during the node upgrade", "n2")], id="joined"),
        pytest.param({"nodes": []}, [("node left during the node upgrade", "n1")], id="left"),
    ],
)
def test_anomaly_is_logged_once(given: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    given = {"nodes": [node("n1")], **given}
    assert logged(given, given, given) == expected


EARLIER = "pending hook of an earlier upgrade on a machine-plan Secret"
FOREIGN = "hook of another controller on a machine-plan Secret"


@pytest.mark.rule("nodes: a stale hook is logged and not fatal")
@pytest.mark.parametrize(
    ("annotations", "stale", "single", "expected"),
    [
        pytest.param(REQUESTED, [], False, [], id="this upgrade's hook"),
        pytest.param(REQUESTED, ["s"], False, [EARLIER], id="stale hook"),
        pytest.param({**REQUESTED, PRE: OPTIONS}, ["s"], False, [], id="stale hook, acknowledged"),
        pytest.param(REQUESTED, ["other"], False, [], id="stale hook of another Secret"),
        pytest.param(REQUESTED, [], True, [EARLIER], id="on a single node"),
        pytest.param({}, ["s"], True, [], id="hook removed"),
        pytest.param({POST_DRAIN: "{}"}, [], False, [FOREIGN], id="another controller's hook"),
        pytest.param({PRE_DRAIN: ""}, [], False, [FOREIGN], id="empty hook"),
    ],
)
def test_stale_and_foreign_hooks_are_logged(
    annotations: dict[str, str], stale: list[str], expected: list[str], *, single: bool
) -> None:
    one = secret("s", "m", **annotations)
    given: dict[str, Any] = {"nodes": [node("n1")], "secrets": [one], "machines": [machine("m", "n1")]}
    lines = logged(given, given, single=single, stale=frozenset(stale))
    assert lines == [(line, "s") for line in expected]


def test_reappearing_anomaly_and_another_plans_are_logged() -> None:
    odd: dict[str, Any] = {"nodes": []}
    well = {"nodes": [node("n1")]}
    assert len(logged(odd, well, odd)) == 2
    assert len(logged(odd, odd, plan="")) == 2
