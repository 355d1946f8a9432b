"""The original upgradeStrategy of Rancher's cluster: kept during the upgrade, and given back after it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock

import pytest
from structlog.testing import capture_logs

from tests.pipeline.settings.test_rancher import (
    OTHERS,
    again,
    annotate,
    annotation,
    change,
    now,
    overtaken,
    recorded,
    start,
    stored,
)
from tests.support.server.lost_responses import responses_lost
from upgrade_manager.api.keys import ANNOTATION_ORIGINAL_STRATEGY, ANNOTATION_UNFINISHED_UPGRADE
from upgrade_manager.api.ledger import LedgerKind, new_entry
from upgrade_manager.api.names import event_digest
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Conflict, Forbidden, Invalid, Transient
from upgrade_manager.kube.patch import JsonPatch
from upgrade_manager.kube.resources import PROVISIONING_CLUSTERS
from upgrade_manager.pipeline import ledger
from upgrade_manager.pipeline.context import ReconcileContext
from upgrade_manager.pipeline.settings import overrides, rancher
from upgrade_manager.pipeline.settings.giving_back import give_back
from upgrade_manager.pipeline.settings.upgrade_strategy import with_hooks

if TYPE_CHECKING:
    from tests.pipeline.settings.test_rancher import Overtaken
    from tests.support.cluster.harvester import Harvester
    from upgrade_manager.kube.objects import Object

__all__ = ["overtaken"]

LOCAL = "Cluster fleet-local/local"
BARE = {ANNOTATION_ORIGINAL_STRATEGY: None}
SEVEN = {"workerConcurrency": "7"}


async def replace_strategy(cluster: Harvester, value: Any) -> Any:
    """Set the whole strategy as a user does; return the cluster."""
    patch = JsonPatch([{"op": "add", "path": "/spec/rkeConfig/upgradeStrategy", "value": value}])
    return await cluster.client.patch(PROVISIONING_CLUSTERS, "local", patch, namespace="fleet-local")


def named(cluster: Harvester, ctx: ReconcileContext, reason: str, about: str) -> bool:
    """Return True if the last event has the name of this plan, reason and object, so that it is recorded once."""
    return cluster.recorder.names[-1].endswith(event_digest(ctx.owner.uid, f"{reason}/{about}"))


@pytest.mark.rule("pipeline: the Rancher cluster's upgradeStrategy is restored")
@pytest.mark.parametrize(
    "rke",
    [
        pytest.param({"provisionGeneration": 4}, id="no strategy"),
        pytest.param({"provisionGeneration": 4, "upgradeStrategy": OTHERS}, id="a strategy"),
        pytest.param({"provisionGeneration": 4, "upgradeStrategy": {}}, id="an empty strategy"),
        pytest.param({}, id="no rkeConfig"),
    ],
)
async def test_strategy_is_reverted_and_the_generation_stays(cluster: Harvester, rke: Object) -> None:
    await start(await recorded(cluster, rke))
    for _ in range(2):
        await give_back(await again(cluster), keep_strategy=False)
    assert (await now(cluster))["rkeConfig"] == rke | {"provisionGeneration": rke.get("provisionGeneration", 0) + 1}
    assert objects.annotations_of(await stored(cluster)).keys() == {ANNOTATION_UNFINISHED_UPGRADE}
    assert {reason for reason, _ in cluster.recorder.recorded} == {"SettingRestored"}


async def test_strategy_without_our_hooks_stays(cluster: Harvester) -> None:
    await give_back(await recorded(cluster, {"upgradeStrategy": OTHERS}), keep_strategy=False)
    assert (await now(cluster))["rkeConfig"] == {"upgradeStrategy": OTHERS}


async def test_log_names_the_purpose_of_each_patch(cluster: Harvester) -> None:
    ctx = await recorded(cluster)
    with capture_logs() as logs:
        await start(ctx)
        await give_back(ctx, keep_strategy=False)
    assert [log["event"] for log in logs if log.get("object") == "fleet-local/local"] == [
        "node upgrade requested from Rancher",
        "setting given back",
    ]


@pytest.mark.parametrize(
    ("annotations", "strategy", "after"),
    [
        pytest.param({}, with_hooks(OTHERS) | SEVEN, OTHERS | SEVEN, id="changed"),
        pytest.param(BARE, with_hooks(OTHERS), OTHERS, id="annotation removed"),
        pytest.param({}, OTHERS, OTHERS, id="hooks removed"),
        pytest.param(BARE, OTHERS | SEVEN, OTHERS | SEVEN, id="both removed, changed"),
        pytest.param(BARE, {"controlPlaneConcurrency": "1"}, {"controlPlaneConcurrency": "1"}, id="reverted by a user"),
        pytest.param({}, {"controlPlaneConcurrency": "1"}, {"controlPlaneConcurrency": "2"}, id="member kept"),
    ],
)
async def test_strategy_of_other_clients_is_kept_without_hooks(
    cluster: Harvester, annotations: Object, strategy: Object, after: Object
) -> None:
    ctx = await recorded(cluster, {"upgradeStrategy": OTHERS})
    await start(ctx)
    await replace_strategy(cluster, strategy)
    await change(cluster, {"metadata": {"annotations": annotations}})
    await give_back(ctx, keep_strategy=False)
    assert (await now(cluster))["rkeConfig"]["upgradeStrategy"] == after
    assert objects.annotations_of(await stored(cluster)).keys() == {ANNOTATION_UNFINISHED_UPGRADE}
    text = (
        f"{LOCAL}: parts of spec.rkeConfig.upgradeStrategy were changed during the upgrade and keep their new values; "
        f"it was {json.dumps(OTHERS)} before"
    )
    if after == OTHERS:
        assert [reason for reason, _ in cluster.recorder.recorded] == ["SettingRestored"]
    else:
        assert cluster.recorder.recorded == [("SettingNotRestored", text)]
        assert named(cluster, ctx, "SettingNotRestored", LOCAL)


async def test_annotation_of_a_removed_strategy_is_removed(cluster: Harvester) -> None:
    ctx = await recorded(cluster)
    await start(ctx)
    await change(cluster, {"spec": {"rkeConfig": {"upgradeStrategy": None}}})
    await give_back(ctx, keep_strategy=False)
    assert (await now(cluster))["rkeConfig"] == {"provisionGeneration": 5}
    assert objects.annotations_of(await stored(cluster)).keys() == {ANNOTATION_UNFINISHED_UPGRADE}


async def test_strategy_of_the_next_plan_stays(cluster: Harvester) -> None:
    ctx = await recorded(cluster)
    await start(ctx)
    await annotate(cluster, json.dumps({"uid": "next"}))
    before = await stored(cluster)
    await give_back(ctx, keep_strategy=False)
    assert await stored(cluster) == before
    assert cluster.recorder.recorded == []


async def test_revert_conflicts_with_writes_to_the_strategy_only(cluster: Harvester, overtaken: Overtaken) -> None:
    ctx = await recorded(cluster)
    await start(ctx)
    overtaken({"spec": {"rkeConfig": {"upgradeStrategy": {"workerConcurrency": "7"}}}})
    with pytest.raises(Conflict):
        await give_back(ctx, keep_strategy=False)
    assert (await now(cluster))["rkeConfig"]["upgradeStrategy"]["workerConcurrency"] == "7"
    overtaken({"metadata": {"labels": {"touched": "yes"}}})
    await give_back(ctx, keep_strategy=False)
    assert (await now(cluster))["rkeConfig"]["upgradeStrategy"] == {"workerConcurrency": "7"}
    assert len(set(cluster.recorder.names)) == 1


async def test_revert_conflicts_with_a_removed_annotation(cluster: Harvester, overtaken: Overtaken) -> None:
    ctx = await recorded(cluster)
    await start(ctx)
    overtaken({"metadata": {"annotations": BARE}})
    with pytest.raises(Conflict):
        await give_back(ctx, keep_strategy=False)


async def test_removed_hooks_are_added_without_a_generation(cluster: Harvester) -> None:
    ctx = await recorded(cluster, {"provisionGeneration": 4, "upgradeStrategy": OTHERS})
    await start(ctx)
    await change(cluster, {"metadata": {"annotations": BARE | {"example.com/x": "y"}}})
    bare = await replace_strategy(cluster, {"workerDrainOptions": {"timeout": 7}})
    await rancher.add_hooks(ctx, bare, original=OTHERS, is_contested=False)
    rke = (await now(cluster))["rkeConfig"]
    assert rke == {"provisionGeneration": 5, "upgradeStrategy": with_hooks({"workerDrainOptions": {"timeout": 7}})}
    assert json.loads(await annotation(cluster))["upgradeStrategy"] == OTHERS
    text = (
        f"{LOCAL}: the upgrade manager's drain hooks were removed from spec.rkeConfig.upgradeStrategy and have been "
        "added again. Without them Rancher upgrades nodes that run VMs; find the client that removed them in the API "
        "server's audit log"
    )
    assert cluster.recorder.recorded == [("DrainHooksAdded", text)]
    # Each removal has a separate event.
    assert named(cluster, ctx, "DrainHooksAdded", f"generation {objects.metadata(bare)['generation']}")
    rancher.report_added_hooks(ctx, await stored(cluster))
    assert len(cluster.recorder.recorded) == 1


async def test_added_hooks_are_reported_by_the_next_process(cluster: Harvester) -> None:
    ctx = await recorded(cluster, {"provisionGeneration": 4, "upgradeStrategy": OTHERS})
    await start(ctx)
    bare = await replace_strategy(cluster, {"workerDrainOptions": {"timeout": 7}})
    with responses_lost(ctx.client, "patch"), pytest.raises(Transient):
        await rancher.add_hooks(ctx, bare, original=OTHERS, is_contested=False)
    assert cluster.recorder.recorded == []
    rancher.report_added_hooks(ctx, await stored(cluster))
    assert [reason for reason, _ in cluster.recorder.recorded] == ["DrainHooksAdded"]
    assert named(cluster, ctx, "DrainHooksAdded", f"generation {objects.metadata(bare)['generation']}")


async def test_contested_hooks_are_not_reported(cluster: Harvester) -> None:
    ctx = await recorded(cluster, {"provisionGeneration": 4, "upgradeStrategy": OTHERS})
    await start(ctx)
    bare = await replace_strategy(cluster, {"workerDrainOptions": {"timeout": 7}})
    await rancher.add_hooks(ctx, bare, original=OTHERS, is_contested=True)
    rancher.report_added_hooks(ctx, await stored(cluster))
    assert cluster.recorder.recorded == []


@pytest.mark.rule("nodes: the next plan takes over, and gives the first plan's original strategy back")
async def test_annotation_has_plan_and_original(cluster: Harvester) -> None:
    ctx = await recorded(cluster, {"upgradeStrategy": {"workerConcurrency": "3"}})
    await start(ctx)
    text = f'{{"plan":"up","uid":"{ctx.owner.uid}","upgradeStrategy":{{"workerConcurrency":"3"}}}}'
    assert await annotation(cluster) == text


async def test_original_strategy_is_annotated_again(cluster: Harvester) -> None:
    ctx = await recorded(cluster, rke={"upgradeStrategy": {"workerConcurrency": "3"}})
    await start(ctx)
    entry = overrides.strategy_entry(ctx)
    before = await stored(cluster)
    assert await rancher.keep_original(ctx, before, entry)
    assert await stored(cluster) == before
    bare = await annotate(cluster, None)
    assert not await rancher.keep_original(ctx, bare, entry)
    after = await stored(cluster)
    assert objects.annotations_of(after) == objects.annotations_of(before)


async def test_plan_without_a_record_annotates_nothing(cluster: Harvester) -> None:
    ctx = await recorded(cluster, {"upgradeStrategy": with_hooks({})})
    before = await stored(cluster)
    assert await rancher.keep_original(ctx, before, None)
    assert await stored(cluster) == before


async def test_annotation_of_another_plan_is_replaced(cluster: Harvester) -> None:
    ctx = await recorded(cluster)
    await start(ctx)
    others = await annotate(cluster, json.dumps({"uid": "earlier", "upgradeStrategy": None}))
    assert not await rancher.keep_original(ctx, others, overrides.strategy_entry(ctx))
    assert ctx.owner.uid in await annotation(cluster)


@pytest.mark.parametrize("error", [Forbidden("a webhook says no"), Invalid("a webhook says no")], ids=["403", "422"])
async def test_refused_annotation_holds_nothing_up(
    cluster: Harvester, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    ctx = await recorded(cluster)
    await start(ctx)
    bare = await annotate(cluster, None)
    monkeypatch.setattr(ReconcileContext, "patch", AsyncMock(side_effect=error))
    with capture_logs() as logs:
        assert not await rancher.keep_original(ctx, bare, overrides.strategy_entry(ctx))
    assert [(log["event"], log["error"]) for log in logs] == [("original strategy not annotated", "a webhook says no")]


async def test_strategy_changed_before_the_start_is_the_original(cluster: Harvester) -> None:
    ctx = await recorded(cluster, {"upgradeStrategy": OTHERS})
    overrides.refresh_strategy(ctx, await replace_strategy(cluster, SEVEN))
    entry = overrides.strategy_entry(ctx) or {}
    assert (entry["original"], entry["applied"]) == (SEVEN, with_hooks(SEVEN))


def without_worker_hook() -> Object:
    """Return the applied strategy after another client has removed a hook."""
    strategy = with_hooks(OTHERS)
    del strategy["workerDrainOptions"]["preDrainHooks"]
    return strategy


@pytest.mark.parametrize(
    ("found", "entry", "original"),
    [
        pytest.param(with_hooks(OTHERS), True, None, id="all hooks"),
        pytest.param(without_worker_hook(), True, OTHERS, id="one hook removed"),
        pytest.param(without_worker_hook() | SEVEN, True, OTHERS | SEVEN, id="one hook removed, and changed"),
        pytest.param(OTHERS | SEVEN, True, OTHERS | SEVEN, id="replaced"),
        pytest.param(SEVEN, False, SEVEN, id="without a record"),
    ],
)
async def test_removed_hooks_change_the_record(
    cluster: Harvester, found: Object, original: Object | None, *, entry: bool
) -> None:
    ctx = await recorded(cluster, {"upgradeStrategy": OTHERS})
    others = new_entry(LedgerKind.TAINT, "n1", object_="Node n1", since="2026-01-01T00:00:00Z")
    before = [*(ledger.entries(ctx) if entry else []), others]
    ctx.status["ledger"] = before
    changed = overrides.changed_strategy(ctx, await replace_strategy(cluster, found))
    assert changed == (None if original is None else overrides.strategy_entry(ctx))
    if changed is None:
        assert ctx.status["ledger"] == before
    else:
        assert (changed["original"], changed["applied"]) == (original, with_hooks(found))
        assert ctx.status["ledger"] == ([changed, others] if entry else [others, changed])
