from __future__ import annotations

import json
from typing import Any

import pytest

from upgrade_manager.nodes.machine_plan import (
    acknowledgements,
    node_of,
    post_drain_hook,
    pre_drain_hook,
    tier_of,
    with_hooks,
)
from upgrade_manager.nodes.model import Hook

PRE, POST = "management.harvesterhci.io/pre-hook", "management.harvesterhci.io/post-hook"
PRE_DRAIN, POST_DRAIN = "rke.cattle.io/pre-drain", "rke.cattle.io/post-drain"
MACHINE = {"metadata": {"name": "m1"}, "status": {"nodeRef": {"name": "n1"}}}
#: As Rancher writes it: sorted keys, no blanks, members of either age.
OPTIONS = json.dumps(
    {"enabled": True, "preDrainHooks": [{"annotation": PRE}], "postDrainHooks": [{"annotation": POST}]},
    separators=(",", ":"),
    sort_keys=True,
)


def with_(annotations: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": "s1", "labels": {"rke.cattle.io/machine-name": "m1"}, "annotations": annotations}}


@pytest.mark.rule("nodes: a pending hook that does not name the manager's hook is not acknowledged")
@pytest.mark.parametrize(
    ("annotations", "hook"),
    [
        pytest.param({}, Hook(), id="no hook"),
        pytest.param({PRE_DRAIN: OPTIONS}, Hook(requested=OPTIONS), id="pending"),
        pytest.param(
            {PRE_DRAIN: OPTIONS, PRE: OPTIONS}, Hook(requested=OPTIONS, acknowledged=OPTIONS), id="acknowledged"
        ),
        pytest.param({PRE_DRAIN: OPTIONS, PRE: "old"}, Hook(requested=OPTIONS, acknowledged="old"), id="pending again"),
        pytest.param({PRE_DRAIN: ""}, Hook(), id="empty"),
        pytest.param({PRE_DRAIN: "true"}, Hook(), id="not drain options"),
        pytest.param({PRE_DRAIN: "{"}, Hook(), id="broken JSON"),
        pytest.param({PRE_DRAIN: "[" * 100_000}, Hook(), id="deeply nested JSON"),
        pytest.param({PRE_DRAIN: "null"}, Hook(), id="null"),
        pytest.param({PRE_DRAIN: '{"preDrainHooks":null}'}, Hook(), id="no hooks"),
        pytest.param({PRE_DRAIN: '{"preDrainHooks":["x"]}'}, Hook(), id="hooks of another form"),
        pytest.param(
            {PRE_DRAIN: '{"preDrainHooks":[{"annotation":"harvesterhci.io/pre-hook"}]}'},
            Hook(),
            id="hook of the built-in flow",
        ),
        pytest.param({PRE_DRAIN: json.dumps({"postDrainHooks": [{"annotation": PRE}]})}, Hook(), id="the other list"),
    ],
)
def test_hook_counts_if_it_names_our_annotation(annotations: dict[str, str], hook: Hook) -> None:
    assert pre_drain_hook(with_(annotations)) == hook


def test_post_drain_hook_has_its_annotation() -> None:
    raw = with_({PRE_DRAIN: OPTIONS, POST_DRAIN: OPTIONS, PRE: OPTIONS})
    assert not pre_drain_hook(raw).pending
    assert post_drain_hook(raw).pending


@pytest.mark.rule("nodes: a Secret belongs to a node by its label machine-name and the Machine's nodeRef")
@pytest.mark.parametrize(
    ("machines", "node"),
    [
        pytest.param({"m1": MACHINE}, "n1", id="through the Machine"),
        pytest.param({}, "", id="no Machine"),
        pytest.param({"m1": {"metadata": {"name": "m1"}}}, "", id="a Machine without status"),
        pytest.param({"m1": {"metadata": {}, "status": {"nodeRef": None}}}, "", id="a Machine without a node"),
    ],
)
def test_node_of_a_secret(machines: dict[str, Any], node: str) -> None:
    assert node_of(with_({}), machines) == node


def test_secret_without_labels_has_no_node() -> None:
    assert node_of({"metadata": {"name": "s"}}, {"m1": MACHINE}) == ""


def test_acknowledgements_are_found() -> None:
    assert acknowledgements(with_({PRE: "x", POST: "y", PRE_DRAIN: "z"})) == (PRE, POST)
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
        named("acknowledged", {PRE_DRAIN: OPTIONS, PRE: OPTIONS}),
        named("pending", {POST_DRAIN: OPTIONS}),
        named("built-in", {PRE_DRAIN: "{}"}),
        named("none", {}),
    ]
    assert with_hooks(secrets) == ["acknowledged", "pending"]


def named(name: str, annotations: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": name, "annotations": annotations}}
