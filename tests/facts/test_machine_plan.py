from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.cluster.nodes import OPTIONS, POST, POST_DRAIN, PRE, PRE_DRAIN, machine, secret
from upgrade_manager.facts.machine_plan import (
    Hook,
    acknowledgements,
    begun_drains,
    held_nodes,
    is_draining,
    is_pending,
    node_of,
    post_drain_hook,
    pre_drain_hook,
    tier_of,
)

PENDING, ACKNOWLEDGED = Hook(requested=OPTIONS), Hook(requested=OPTIONS, acknowledged=OPTIONS)
BOTH = json.dumps({"preDrainHooks": [{"annotation": "x/hook"}, {"annotation": PRE}]})
DRAIN_OPTIONS = "rke.cattle.io/drain-options"
BUILT_IN = '{"preDrainHooks":[{"annotation":"harvesterhci.io/pre-hook"}]}'


@pytest.mark.rule(
    "api: pre-hook and post-hook on a machine-plan Secret copy Rancher's pre-drain and post-drain",
    "nodes: while the pre-drain hook is pending the node has a pre-drain Job and is PreDraining",
)
@pytest.mark.parametrize(
    ("hook", "pending"),
    [
        pytest.param(Hook(), False, id="no hook"),
        pytest.param(Hook(acknowledged="D"), False, id="acknowledged without a request"),
        pytest.param(Hook(requested="D"), True, id="pending"),
        pytest.param(Hook(requested="D", acknowledged="D"), False, id="acknowledged"),
        pytest.param(Hook(requested="D", acknowledged="D "), True, id="compared byte for byte"),
    ],
)
def test_hook_is_pending_until_acknowledged(hook: Hook, *, pending: bool) -> None:
    assert hook.pending is pending


@pytest.mark.rule("nodes: a pending hook that does not name the manager's hook is not acknowledged")
@pytest.mark.parametrize(
    ("annotations", "hook"),
    [
        pytest.param({}, Hook(), id="no hook"),
        pytest.param({PRE_DRAIN: OPTIONS}, PENDING, id="pending"),
        pytest.param({PRE_DRAIN: OPTIONS, PRE: OPTIONS}, ACKNOWLEDGED, id="acknowledged"),
        pytest.param({PRE_DRAIN: OPTIONS, PRE: "old"}, Hook(requested=OPTIONS, acknowledged="old"), id="pending again"),
        pytest.param({PRE_DRAIN: ""}, Hook(), id="empty"),
        pytest.param({PRE_DRAIN: "true"}, Hook(), id="not drain options"),
        pytest.param({PRE_DRAIN: "{"}, Hook(), id="broken JSON"),
        pytest.param({PRE_DRAIN: "[" * 100_000}, Hook(), id="deeply nested JSON"),
        pytest.param({PRE_DRAIN: "null"}, Hook(), id="null"),
        pytest.param({PRE_DRAIN: '{"preDrainHooks":null}'}, Hook(), id="no hooks"),
        pytest.param({PRE_DRAIN: '{"preDrainHooks":["x"]}'}, Hook(), id="hooks of another form"),
        pytest.param({PRE_DRAIN: BUILT_IN}, Hook(others=("harvesterhci.io/pre-hook",)), id="hook of the built-in flow"),
        pytest.param({PRE_DRAIN: BOTH}, Hook(requested=BOTH, others=("x/hook",)), id="our hook and another"),
        pytest.param({PRE_DRAIN: BOTH, "x/hook": BOTH}, Hook(requested=BOTH), id="another hook acknowledged"),
        pytest.param({PRE_DRAIN: json.dumps({"postDrainHooks": [{"annotation": PRE}]})}, Hook(), id="the other list"),
    ],
)
def test_hook_counts_if_it_names_our_annotation(annotations: dict[str, str], hook: Hook) -> None:
    assert pre_drain_hook(secret("s1", "m1", **annotations)) == hook


def test_post_drain_hook_has_its_annotation() -> None:
    raw = secret("s1", "m1", **{PRE_DRAIN: OPTIONS, POST_DRAIN: OPTIONS, PRE: OPTIONS})
    assert not pre_drain_hook(raw).pending
    assert post_drain_hook(raw).pending


@pytest.mark.rule("nodes: a Secret belongs to a node by its label machine-name and the Machine's nodeRef")
@pytest.mark.parametrize(
    ("one", "machines", "node"),
    [
        pytest.param(secret("s", "m1"), {"m1": machine("m1", "n1")}, "n1", id="through the Machine"),
        pytest.param(secret("s", "m1"), {}, "", id="no Machine"),
        pytest.param(secret("s", "m1"), {"m1": {"metadata": {"name": "m1"}}}, "", id="a Machine without status"),
        pytest.param(secret("s", "m1"), {"m1": {"status": {"nodeRef": None}}}, "", id="a Machine without a node"),
        pytest.param({"metadata": {"name": "s"}}, {"m1": machine("m1", "n1")}, "", id="a Secret without labels"),
    ],
)
def test_node_of_a_secret(one: dict[str, Any], machines: dict[str, Any], node: str) -> None:
    assert node_of(one, machines) == node


def test_acknowledgements_are_found() -> None:
    assert acknowledgements(secret("s1", "m1", **{PRE: "x", POST: "y", PRE_DRAIN: "z"})) == (PRE, POST)
    assert acknowledgements({"metadata": {"name": "s"}}) == ()


@pytest.mark.parametrize(
    ("roles", "tier"),
    [
        pytest.param(["etcd-role", "control-plane-role", "init-node"], 0, id="the first etcd node"),
        pytest.param(["etcd-role", "control-plane-role", "worker-role"], 1, id="another etcd node"),
        pytest.param(["control-plane-role"], 2, id="the control plane alone"),
        pytest.param(["worker-role"], 3, id="a worker"),
        pytest.param(["worker-role", "init-node"], 3, id="only an etcd node can be the first"),
        pytest.param([], None, id="no role"),
    ],
)
def test_tiers_follow_ranchers_order(roles: list[str], tier: int | None) -> None:
    labels = {f"rke.cattle.io/{role}": "true" for role in roles}
    assert tier_of({"metadata": {"labels": labels}}) == tier


def test_hooks_for_us_count_acknowledged_or_not() -> None:
    secrets = [
        secret("acknowledged", "m", **{PRE_DRAIN: OPTIONS, PRE: OPTIONS}),
        secret("pending", "m", **{POST_DRAIN: OPTIONS}),
        secret("built-in", "m", **{PRE_DRAIN: "{}"}),
        secret("none", "m"),
    ]
    assert begun_drains(secrets) == ["acknowledged", "pending"]
    assert [one["metadata"]["name"] for one in filter(is_pending, secrets)] == ["pending"]


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param({}, False, id="no drain"),
        pytest.param({DRAIN_OPTIONS: OPTIONS}, True, id="begun"),
        pytest.param({PRE_DRAIN: OPTIONS}, True, id="pending"),
        pytest.param({PRE_DRAIN: OPTIONS, PRE: OPTIONS}, True, id="acknowledged"),
        pytest.param({POST_DRAIN: OPTIONS}, True, id="drained"),
        pytest.param({DRAIN_OPTIONS: BUILT_IN, PRE_DRAIN: BUILT_IN}, False, id="hooks of others"),
        pytest.param({DRAIN_OPTIONS: "{"}, False, id="invalid options"),
    ],
)
def test_node_is_draining_until_rancher_has_uncordoned_it(annotations: dict[str, str], *, expected: bool) -> None:
    one = secret("s", "m-n1", **annotations)
    assert is_draining(one) is expected
    assert held_nodes(["n1"], [one], [machine("m-n1", "n1")]) == ({"n1"} if expected else set())
    assert held_nodes(["n2"], [one], [machine("m-n1", "n1")]) == held_nodes(["n1"], [one], []) == set()
