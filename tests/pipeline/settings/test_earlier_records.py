"""The settings of a plan that a manager without a ledger began."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.pipeline.settings.test_overrides import DESCHEDULER, INTERVAL, now, settings
from tests.pipeline.settings.test_rancher import OTHERS, annotate, local, stored
from tests.support.cluster.harvester import RELEASE, Harvester
from upgrade_manager.api.keys import ANNOTATION_UPGRADE_STRATEGY
from upgrade_manager.api.ledger import STRATEGY_FIELD
from upgrade_manager.facts.drain_hooks import has_hooks
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.pipeline import ledger
from upgrade_manager.pipeline.context import ReconcileContext
from upgrade_manager.pipeline.ending.settlement import name_unrecorded
from upgrade_manager.pipeline.settings.earlier_records import adopt
from upgrade_manager.pipeline.settings.giving_back import give_back
from upgrade_manager.pipeline.settings.upgrade_strategy import with_hooks, without_hooks

RECORDED = {INTERVAL: "600", DESCHEDULER: "true"}
OTHER = {"currentPhase": "CleaningUp"}


def without_grace(strategy: Object) -> Object:
    """Return the strategy as version 0.1 applied it."""
    return {
        key: {name: one for name, one in value.items() if name != "gracePeriod"} if isinstance(value, dict) else value
        for key, value in strategy.items()
    }


HELD = without_grace(with_hooks(OTHERS))


def record(**fields: Any) -> dict[str, str]:
    """Return the annotations of version 0.1."""
    return {**RECORDED, ANNOTATION_UPGRADE_STRATEGY: json.dumps({"provisionGeneration": 4, **fields})}


async def begun(
    cluster: Harvester,
    annotations: dict[str, str],
    *,
    strategy: Any = HELD,
    phase: str = "NodeUpgrading",
    **status: Any,
) -> ReconcileContext:
    """Create a plan that an earlier manager has left in that phase, with the settings as it has set them."""
    await settings(cluster, value="1800", enabled=False)
    kubernetes = RELEASE["kubernetes"]
    await local(cluster, rke={"provisionGeneration": 5, "upgradeStrategy": strategy}, kubernetes=kubernetes)
    reached = [{"phase": "NodeUpgrading", "phaseTransitionTimestamp": "2026-01-01T00:00:00Z"}]
    recorded = {"currentPhase": phase, "phaseTransitionTimestamps": reached, "releaseMetadata": RELEASE, **status}
    return await planned(cluster, annotations, recorded)


async def planned(cluster: Harvester, annotations: dict[str, str], status: Object) -> ReconcileContext:
    """Create a plan with annotations and status."""
    await cluster.plan(status=status)
    patch = MergePatch({"metadata": {"annotations": annotations}})
    return cluster.context(await cluster.client.patch(UPGRADE_PLANS, "up", patch))


async def ended(cluster: Harvester) -> tuple[Any, ...]:
    """Return Longhorn's interval, whether the descheduler is on, and the strategy."""
    rke = objects.spec(await stored(cluster))["rkeConfig"]
    return (*await now(cluster), rke.get("upgradeStrategy"))


@pytest.mark.rule("nodes: what an earlier manager recorded of its changes is read into the ledger")
@pytest.mark.parametrize(
    ("annotations", "strategy", "expected"),
    [
        pytest.param(record(upgradeStrategy=OTHERS), HELD, ("600", True, OTHERS), id="version 0.1"),
        pytest.param(
            record(upgradeStrategy=None), without_grace(with_hooks({})), ("600", True, None), id="unset before"
        ),
        pytest.param(record(upgradeStrategy=OTHERS), with_hooks(OTHERS), ("600", True, OTHERS), id="our grace period"),
        pytest.param(record(upgradeStrategy=OTHERS), OTHERS, ("600", True, OTHERS), id="strategy given back"),
    ],
)
async def test_recorded_settings_are_given_back(
    cluster: Harvester, annotations: dict[str, str], strategy: Any, expected: tuple[Any, ...]
) -> None:
    ctx = await begun(cluster, annotations, strategy=strategy)
    await adopt(ctx)
    assert ctx.raw["status"]["ledger"] == ledger.entries(ctx)
    await give_back(ctx, keep_strategy=False)
    assert name_unrecorded(ctx) == []
    assert await ended(cluster) == expected
    assert "SettingNotRestored" not in [reason for reason, _ in cluster.recorder.recorded]


@pytest.mark.rule("nodes: a value of an upgrade without any record is named at the end")
@pytest.mark.parametrize(
    ("annotations", "named", "interval"),
    [
        pytest.param({}, 2, "1800", id="no record"),
        pytest.param({INTERVAL: "soon"}, 2, "1800", id="invalid"),
        pytest.param({ANNOTATION_UPGRADE_STRATEGY: "{"}, 2, "1800", id="invalid JSON"),
        pytest.param({ANNOTATION_UPGRADE_STRATEGY: "[]"}, 2, "1800", id="no object"),
        pytest.param(RECORDED, 1, "600", id="the Go manager"),
    ],
)
async def test_values_without_a_record_are_named(
    cluster: Harvester, annotations: dict[str, str], named: int, interval: str
) -> None:
    ctx = await begun(cluster, annotations)
    await adopt(ctx)
    await give_back(ctx, keep_strategy=False)
    value, _, strategy = await ended(cluster)
    assert (value, has_hooks(strategy), strategy) == (interval, False, without_hooks(HELD))
    texts = name_unrecorded(ctx)
    assert len(texts) == named
    assert f"{STRATEGY_FIELD} is" in texts[named - 1]
    assert ctx.status["ledger"] == []
    warned = [message for reason, message in cluster.recorder.recorded if reason == "SettingNotRestored"]
    assert len(warned) == named


async def test_text_names_object_field_and_value(cluster: Harvester) -> None:
    ctx = await begun(cluster, {}, strategy=OTHERS)
    await adopt(ctx)
    text = (
        'Setting longhorn-system/replica-replenishment-wait-interval: value is "1800", as an upgrade sets it, and no '
        "record has its value before. Set it to the value that you want"
    )
    assert name_unrecorded(ctx) == [text]


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        pytest.param({"plan": "up", "uid": "", "upgradeStrategy": OTHERS}, OTHERS, id="of this plan"),
        pytest.param({"plan": "next", "uid": "next", "upgradeStrategy": OTHERS}, HELD, id="of another plan"),
    ],
)
async def test_annotation_of_the_cluster_has_the_original(
    cluster: Harvester, annotation: Object, expected: Object
) -> None:
    ctx = await begun(cluster, RECORDED)
    await annotate(cluster, json.dumps({**annotation, "uid": annotation["uid"] or ctx.owner.uid}))
    await adopt(ctx)
    await give_back(ctx, keep_strategy=False)
    assert await ended(cluster) == ("600", True, expected)
    assert name_unrecorded(ctx) == []


@pytest.mark.parametrize(
    ("phase", "other", "expected"),
    [
        pytest.param("Failed", {}, ("600", True, OTHERS), id="ended"),
        pytest.param("Failed", OTHER, ("1800", False, HELD), id="ended, and another plan runs"),
        pytest.param("CleaningUp", OTHER, ("600", True, OTHERS), id="running"),
    ],
)
async def test_ended_plan_gives_back_what_it_records(
    cluster: Harvester, phase: str, other: Object, expected: tuple[Any, ...]
) -> None:
    ctx = await begun(cluster, record(upgradeStrategy=OTHERS), phase=phase)
    await cluster.plan("other", status=other)
    await adopt(ctx)
    await give_back(ctx, keep_strategy=False)
    assert await ended(cluster) == expected


async def test_ended_plan_without_records_owes_nothing(cluster: Harvester) -> None:
    ctx = await begun(cluster, {}, phase="Succeeded")
    await adopt(ctx)
    assert ctx.status["ledger"] == []


async def test_nothing_is_read_before_the_node_upgrade(cluster: Harvester) -> None:
    ctx = await begun(cluster, record(upgradeStrategy=OTHERS), phase="ClusterUpgraded", phaseTransitionTimestamps=[])
    await adopt(ctx)
    assert ctx.status["ledger"] == []


async def test_missing_objects_owe_nothing(cluster: Harvester) -> None:
    reached = [{"phase": "NodeUpgrading", "phaseTransitionTimestamp": "2026-01-01T00:00:00Z"}]
    nodes = {"n1": {"state": "PreDraining"}}
    status = {"currentPhase": "NodeUpgrading", "phaseTransitionTimestamps": reached, "nodeUpgradeStatuses": nodes}
    ctx = await planned(cluster, record(upgradeStrategy=OTHERS), status)
    await adopt(ctx)
    assert ctx.status["ledger"] == []


@pytest.mark.parametrize(
    ("fields", "status", "expected"),
    [
        pytest.param({"provisionGeneration": 4}, {}, (5, None), id="patched, not recorded"),
        pytest.param({"provisionGeneration": 5}, {}, (None, None), id="not patched"),
        pytest.param({"provisionGeneration": 4}, {"provisionGeneration": 4}, (4, None), id="recorded"),
        pytest.param({"leftOver": ["a", 7]}, {}, (5, ["a"]), id="hooks of an earlier plan"),
        pytest.param({"leftOver": ["a"]}, {"staleHooks": ["b"]}, (5, ["b"]), id="hooks recorded"),
    ],
)
async def test_patch_of_version_0_1_is_not_repeated(
    cluster: Harvester, fields: Object, status: Object, expected: tuple[Any, ...]
) -> None:
    ctx = await begun(cluster, record(upgradeStrategy=OTHERS, **fields), **status)
    await adopt(ctx)
    assert (ctx.status["provisionGeneration"], ctx.status["staleHooks"]) == expected


async def test_originals_are_moved_and_not_read_twice(cluster: Harvester) -> None:
    entry = {"object": "Setting longhorn-system/replica-replenishment-wait-interval", "field": "value"}
    originals = [{**entry, "original": "300", "applied": "1800"}]
    ctx = await begun(cluster, record(upgradeStrategy=OTHERS), originals=originals)
    await adopt(ctx)
    assert "originals" not in ctx.raw["status"]
    assert [one["original"] for one in ledger.entries(ctx)] == ["300", True, OTHERS]
    await give_back(ctx, keep_strategy=False)
    assert (await ended(cluster))[0] == "300"
