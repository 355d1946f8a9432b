"""Changes that a remedy has advised are named at the end of the plan while they are not given back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from upgrade_manager.api.advised import with_advised
from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.facts.evictions import ways_out
from upgrade_manager.kube.errors import Forbidden
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import (
    MUTATING_WEBHOOK_CONFIGURATIONS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)
from upgrade_manager.pipeline.ending import advice, failure
from upgrade_manager.pipeline.outcome import Failed

if TYPE_CHECKING:
    from tests.support.cluster.harvester import Harvester
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.pipeline.context import ReconcileContext

TAINT = {"key": "a/b", "value": "v", "effect": "NoSchedule"}
SELECTOR = {"matchLabels": {"app": "shop"}}
UNDO = "kubectl taint node n1 a/b=v:NoSchedule"


def node(field: str, original: str, undo: str) -> dict[str, Any]:
    return {"kind": "Node", "name": "n1", "field": field, "original": original, "undo": undo}


TAINTED = node("spec.taints", '{"effect":"NoSchedule","key":"a/b","value":"v"}', UNDO)
CORDONED = node("spec.unschedulable", "true", "kubectl cordon n1")


async def advised(cluster: Harvester, *entries: Object) -> ReconcileContext:
    return cluster.context(await cluster.plan(status={"currentPhase": "NodeUpgrading", "advised": [*entries]}))


@pytest.mark.rule("blockers: a change that a remedy advised is named at the end while it is not given back")
@pytest.mark.parametrize(
    ("spec", "entry", "is_changed"),
    [
        pytest.param({"taints": [TAINT]}, TAINTED, False, id="taint given back"),
        pytest.param({"taints": [{**TAINT, "value": "w"}]}, TAINTED, True, id="another taint"),
        pytest.param({}, TAINTED, True, id="taint removed"),
        pytest.param({"unschedulable": True}, CORDONED, False, id="cordoned again"),
        pytest.param({}, CORDONED, True, id="uncordoned"),
        pytest.param({}, {**CORDONED, "name": "left"}, False, id="node has left"),
    ],
)
async def test_change_of_a_node_is_named(
    cluster: Harvester, spec: dict[str, Any], entry: dict[str, Any], *, is_changed: bool
) -> None:
    await cluster.put(NODES, {"metadata": {"name": "n1"}, "spec": spec})
    ctx = await advised(cluster, entry)
    found = await advice.still_changed(ctx)
    assert [one.command for one in found] == [entry["undo"]] * is_changed
    assert cluster.recorder.recorded == [("StillChanged", str(one)) for one in found]
    text = (
        f"Node n1: {entry['field']} is not as it was. A remedy advised to change it: if you changed it for the "
        "upgrade, give it back"
    )
    assert [one.text for one in found] == [text] * is_changed


@pytest.mark.rule("blockers: a change that a remedy advised is named at the end while it is not given back")
async def test_budget_is_named_until_it_is_as_it_was(cluster: Harvester) -> None:
    budget = {"metadata": {"name": "shop", "namespace": "default"}, "spec": {"selector": SELECTOR, "minAvailable": 3}}
    found = {**budget, "status": {"currentHealthy": 3, "desiredHealthy": 3}}
    await cluster.put(POD_DISRUPTION_BUDGETS, budget)
    (entry, other) = with_advised(None, [blocker(found)])
    assert (entry["field"], entry["original"], other["original"]) == ("spec.minAvailable", "3", "null")
    ctx = await advised(cluster, entry, other)
    assert await advice.still_changed(ctx) == []
    patch = {"spec": {"minAvailable": None, "maxUnavailable": 1}}
    await cluster.client.patch(POD_DISRUPTION_BUDGETS, "shop", MergePatch(patch), namespace="default")
    assert {one.command for one in await advice.still_changed(ctx)} == {entry["undo"]}
    patch = {"spec": {"minAvailable": 3, "maxUnavailable": None}}
    await cluster.client.patch(POD_DISRUPTION_BUDGETS, "shop", MergePatch(patch), namespace="default")
    assert await advice.still_changed(ctx) == []


@pytest.mark.rule("blockers: a change that a remedy advised is named at the end while it is not given back")
async def test_deleted_budget_is_created_again(cluster: Harvester) -> None:
    budget = {"metadata": {"name": "shop", "namespace": "default"}, "spec": {"selector": SELECTOR, "minAvailable": 3}}
    recorded = with_advised(None, [blocker(budget), blocker(budget, is_stale=True)])
    assert [one["field"] for one in recorded] == ["spec.minAvailable", "spec.maxUnavailable", "spec.selector"]
    [step] = await advice.still_changed(await advised(cluster, *recorded))
    assert step.text.startswith("PodDisruptionBudget default/shop: it does not exist. ")
    assert step.command == "kubectl create -f pdb-default-shop.yaml"


WEBHOOK = {
    "kind": "Webhook",
    "name": "p.example.com",
    "field": "configuration",
    "original": "true",
    "undo": "kubectl create -f webhook-p.example.com.yaml",
}


@pytest.mark.rule("blockers: a deleted webhook configuration is named at the end until it is created again")
@pytest.mark.parametrize("resource", [VALIDATING_WEBHOOK_CONFIGURATIONS, MUTATING_WEBHOOK_CONFIGURATIONS], ids=str)
async def test_deleted_webhook_is_named(cluster: Harvester, resource: Resource) -> None:
    ctx = await advised(cluster, WEBHOOK)
    hooks = [
        {
            "name": "p.example.com",
            "clientConfig": {"url": "https://192.0.2.1/"},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
    ]
    [step] = await advice.still_changed(ctx)
    assert str(step) == (
        "Webhook p.example.com: no configuration lists it. A remedy advised to change it: if you changed it for the "
        f"upgrade, give it back: {WEBHOOK['undo']}"
    )
    await cluster.put(resource, {"metadata": {"name": "other"}, "webhooks": hooks})
    assert await advice.still_changed(ctx) == []


UNKNOWN = (
    "Node n1: {} could not be checked. A remedy advised to change it: if you changed it for the upgrade, give it back"
)


@pytest.mark.rule("blockers: a change that cannot be checked is named at the end with its undo")
@pytest.mark.parametrize("error", [Forbidden("403"), TimeoutError()], ids=["no permission", "timeout"])
async def test_object_that_cannot_be_read_is_named(
    cluster: Harvester, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async def refuse(*_: Any, **__: Any) -> None:
        raise error

    ctx = await advised(cluster, CORDONED, TAINTED)
    monkeypatch.setattr(cluster.client, "list", refuse)
    found = await advice.still_changed(ctx)
    assert [(one.text, one.command) for one in found] == [
        (UNKNOWN.format(entry["field"]), entry["undo"]) for entry in (CORDONED, TAINTED)
    ]


@pytest.mark.rule("blockers: a change that cannot be checked is named at the end with its undo")
async def test_kind_of_a_later_version_is_named(cluster: Harvester) -> None:
    found = await advice.still_changed(await advised(cluster, {**CORDONED, "kind": "Later"}))
    assert [one.command for one in found] == ["kubectl cordon n1"]


@pytest.mark.rule("blockers: a change that a remedy advised is named at the end while it is not given back")
async def test_failure_names_what_is_still_changed(cluster: Harvester) -> None:
    for name in ("n1", "n2"):
        await cluster.put(NODES, {"metadata": {"name": name}, "spec": {"unschedulable": name == "n2"}})
    second = {**CORDONED, "name": "n2", "undo": "kubectl cordon n2"}
    ctx = await advised(cluster, CORDONED, second)
    await failure.record(ctx, Failed(cause="no space"))
    steps = [one for one in ctx.status["nextSteps"] if one.get("command", "").startswith("kubectl cordon")]
    text = (
        "Node n1: spec.unschedulable is not as it was. A remedy advised to change it: if you changed it for the "
        "upgrade, give it back, once an upgrade has succeeded"
    )
    assert steps == [{"text": text, "command": "kubectl cordon n1"}]
    assert ("StillChanged", f"{text}: kubectl cordon n1") in cluster.recorder.recorded
    assert ctx.status["advised"] == [CORDONED, second]


def blocker(budget: Object, *, is_stale: bool = False) -> Blocker:
    return Blocker(
        reason=BlockerReason.DRAIN_FAILING,
        kind="PodDisruptionBudget",
        namespace="default",
        name="shop",
        message="m",
        remedies=ways_out(budget, is_stale=is_stale),
        since=datetime(2026, 1, 1, tzinfo=UTC),
    )


def test_first_original_of_a_field_stays() -> None:
    budget: dict[str, Any] = {
        "metadata": {"name": "shop", "namespace": "default"},
        "spec": {"minAvailable": 3},
        "status": {"currentHealthy": 3, "desiredHealthy": 3},
    }
    first = with_advised(None, [blocker(budget)])
    changed = {**budget, "spec": {"maxUnavailable": 1}}
    assert with_advised(first, [blocker(changed)]) == first
    many = [{**TAINTED, "name": str(number)} for number in range(20)]
    assert with_advised(many, [blocker(budget)]) == many
