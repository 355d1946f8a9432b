"""The patch of Rancher's cluster, made once whatever crashes; and the reversion of its strategy."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock

import pytest

from tests.support.harvester import RELEASE
from tests.support.nodes import POST, PRE
from upgrade_manager.api.keys import ANNOTATION_UPGRADE_STRATEGY
from upgrade_manager.kube.errors import Conflict, Invalid
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import PROVISIONING_CLUSTERS, UPGRADE_PLANS
from upgrade_manager.pipeline import rancher
from upgrade_manager.pipeline.context import ReconcileContext
from upgrade_manager.pipeline.errors import MissingObject
from upgrade_manager.pipeline.overrides import OVERRIDES
from upgrade_manager.pipeline.rancher import generation, has_hooks, rke_config, upgrade_strategy, without_hooks

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.harvester import Harvester
    from upgrade_manager.kube.objects import Object

    Overtaken = Callable[[Object], None]

STRATEGY = OVERRIDES[0]
OTHERS = {"controlPlaneConcurrency": "2", "controlPlaneDrainOptions": {"enabled": False, "timeout": 60}}


async def local(cluster: Harvester, *, rke: Object | None = None, kubernetes: str = "v1.32.4+rke2r1") -> None:
    spec = {"kubernetesVersion": kubernetes, "rkeConfig": rke if rke is not None else {"provisionGeneration": 4}}
    await cluster.put(PROVISIONING_CLUSTERS, {"metadata": {"name": "local", "namespace": "fleet-local"}, "spec": spec})


async def now(cluster: Harvester) -> Any:
    return (await cluster.find(PROVISIONING_CLUSTERS, "local", "fleet-local"))["spec"]


async def recorded(
    cluster: Harvester, rke: Object | None = None, *, stale: list[str] | None = None, **more: str
) -> ReconcileContext:
    """Create Rancher's cluster and a plan on which it is recorded."""
    await local(cluster, rke=rke, **more)
    ctx = cluster.context(await cluster.plan(status={"releaseMetadata": RELEASE}))
    await ctx.annotate(rancher.record_cluster(await rancher.read_cluster(ctx), stale=stale or []))
    return ctx


async def again(cluster: Harvester) -> ReconcileContext:
    """Return the plan as a new process reads it."""
    return cluster.context(await cluster.client.get(UPGRADE_PLANS, "up"))


@pytest.mark.rule(
    "api: provisionGeneration is the value that the plan set on the Rancher cluster",
    "nodes: one patch sets kubernetesVersion, provisionGeneration + 1 and upgradeStrategy of fleet-local/local",
    "nodes: the cluster is patched once when the manager crashes between patch and record",
    "nodes: the cluster is patched once for an upgrade to the same Kubernetes version",
    "nodes: an earlier upgrade's strategy does not count as this upgrade's patch",
)
@pytest.mark.parametrize(
    ("rke", "target"),
    [
        pytest.param({"provisionGeneration": 4}, 5, id="incremented"),
        pytest.param({}, 1, id="first"),
        pytest.param({"provisionGeneration": 4, "upgradeStrategy": OTHERS}, 5, id="with a strategy"),
        pytest.param({"provisionGeneration": 4, "upgradeStrategy": upgrade_strategy({})}, 5, id="with stale hooks"),
    ],
)
@pytest.mark.parametrize("kubernetes", ["v1.32.4+rke2r1", RELEASE["kubernetes"]], ids=["another", "the same"])
async def test_cluster_is_patched_once(cluster: Harvester, rke: Object, target: int, kubernetes: str) -> None:
    assert await rancher.start_upgrade(await recorded(cluster, rke, kubernetes=kubernetes)) == target
    spec = await now(cluster)
    assert spec["kubernetesVersion"] == RELEASE["kubernetes"]
    assert spec["rkeConfig"]["provisionGeneration"] == target
    assert has_hooks({"spec": spec})
    # Killed between the patch and the record, any number of times.
    for _ in range(3):
        assert await rancher.start_upgrade(await again(cluster)) == target
    assert await now(cluster) == spec


async def test_start_keeps_other_fields(cluster: Harvester) -> None:
    rke = {"upgradeStrategy": OTHERS, "registries": {"configs": {"x": {}}}}
    await rancher.start_upgrade(await recorded(cluster, rke))
    rke = (await now(cluster))["rkeConfig"]
    assert rke["upgradeStrategy"]["controlPlaneDrainOptions"]["timeout"] == 60
    assert rke["registries"] == {"configs": {"x": {}}}


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
    await rancher.start_upgrade(await recorded(cluster, rke))
    for _ in range(2):
        await STRATEGY.revert(await again(cluster))
    assert (await now(cluster))["rkeConfig"] == rke | {"provisionGeneration": rke.get("provisionGeneration", 0) + 1}


async def test_strategy_without_our_hooks_stays(cluster: Harvester) -> None:
    await STRATEGY.revert(await recorded(cluster, {"upgradeStrategy": OTHERS}))
    assert (await now(cluster))["rkeConfig"] == {"upgradeStrategy": OTHERS}


@pytest.mark.parametrize(
    "touch",
    [
        pytest.param({"metadata": {"labels": {"touched": "yes"}}}, id="something else of the object"),
        pytest.param({"spec": {"rkeConfig": {"registries": {"mirrors": {}}}}}, id="something else of RKE"),
    ],
)
async def test_start_ignores_other_writes(cluster: Harvester, overtaken: Overtaken, touch: Object) -> None:
    ctx = await recorded(cluster)
    ctx.cluster = None
    overtaken(touch)
    assert await rancher.start_upgrade(ctx) == 5
    assert has_hooks({"spec": await now(cluster)})


@pytest.mark.parametrize(
    ("touch", "kept"),
    [
        pytest.param({"rkeConfig": {"provisionGeneration": 9}}, 9, id="the generation"),
        pytest.param({"rkeConfig": {"upgradeStrategy": {"workerConcurrency": "7"}}}, 4, id="the strategy"),
        pytest.param({"kubernetesVersion": "v1.33.0+rke2r1"}, 4, id="the version"),
        pytest.param({"rkeConfig": None}, None, id="all of it"),
    ],
)
async def test_start_conflicts_with_writes_to_its_fields(cluster: Harvester, touch: Object, kept: int | None) -> None:
    ctx = await recorded(cluster)
    await cluster.client.patch(PROVISIONING_CLUSTERS, "local", MergePatch({"spec": touch}), namespace="fleet-local")
    with pytest.raises(Conflict):
        await rancher.start_upgrade(ctx)
    spec = await now(cluster)
    assert not has_hooks({"spec": spec})
    assert (spec.get("rkeConfig") or {}).get("provisionGeneration") == kept
    assert await rancher.start_upgrade(await again(cluster)) == (kept or 0) + 1


async def test_refusal_for_another_reason_is_not_a_conflict(
    cluster: Harvester, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx = await recorded(cluster)
    monkeypatch.setattr(ReconcileContext, "patch", AsyncMock(side_effect=Invalid("an admission webhook says no")))
    with pytest.raises(Invalid, match="says no"):
        await rancher.start_upgrade(ctx)


@pytest.mark.parametrize(
    ("stale", "found"),
    [pytest.param([], frozenset(), id="none"), pytest.param(["s1", "s2"], frozenset({"s1", "s2"}), id="two")],
)
async def test_stale_hooks_are_recorded(cluster: Harvester, stale: list[str], found: frozenset[str]) -> None:
    await recorded(cluster, stale=stale)
    assert rancher.stale_hooks(await again(cluster)) == found


@pytest.mark.parametrize("names", ["7", '"s1"', '{"s1":1}', "[7,null]"])
async def test_invalid_list_of_stale_hooks_is_empty(cluster: Harvester, names: str) -> None:
    ctx = cluster.context(await cluster.plan())
    await ctx.annotate({ANNOTATION_UPGRADE_STRATEGY: f'{{"provisionGeneration":4,"leftOver":{names}}}'})
    assert rancher.stale_hooks(ctx) == frozenset()


@pytest.fixture
def overtaken(cluster: Harvester, monkeypatch: pytest.MonkeyPatch) -> Overtaken:
    """Return a function that lets each read of Rancher's cluster be followed by this patch."""
    find = ReconcileContext.find

    def overtake(touch: Object) -> None:
        async def find_and_touch(ctx: ReconcileContext, *args: Any, **more: Any) -> Any:
            found = await find(ctx, *args, **more)
            await cluster.client.patch(PROVISIONING_CLUSTERS, "local", MergePatch(touch), namespace="fleet-local")
            return found

        monkeypatch.setattr(ReconcileContext, "find", find_and_touch)

    return overtake


async def test_revert_conflicts_with_writes_to_the_strategy_only(cluster: Harvester, overtaken: Overtaken) -> None:
    ctx = await recorded(cluster)
    await rancher.start_upgrade(ctx)
    overtaken({"spec": {"rkeConfig": {"upgradeStrategy": {"workerConcurrency": "7"}}}})
    with pytest.raises(Conflict):
        await STRATEGY.revert(ctx)
    assert (await now(cluster))["rkeConfig"]["upgradeStrategy"]["workerConcurrency"] == "7"
    overtaken({"metadata": {"labels": {"touched": "yes"}}})
    await STRATEGY.revert(ctx)
    assert "upgradeStrategy" not in (await now(cluster))["rkeConfig"]


@pytest.mark.rule("pipeline: missing objects do not block deletion")
async def test_missing_cluster_fails_the_start_and_not_the_revert(cluster: Harvester) -> None:
    ctx = cluster.context(await cluster.plan(status={"releaseMetadata": RELEASE}))
    with pytest.raises(MissingObject, match="fleet-local/local"):
        await rancher.read_cluster(ctx)
    await ctx.annotate({ANNOTATION_UPGRADE_STRATEGY: '{"provisionGeneration":1,"upgradeStrategy":null}'})
    await STRATEGY.revert(ctx)


@pytest.mark.parametrize("record", ["", "{", "null", "[]", "7", '{"provisionGeneration":"4"}'])
async def test_invalid_record_stops_nothing(cluster: Harvester, record: str) -> None:
    await local(cluster)
    ctx = cluster.context(await cluster.plan(status={"releaseMetadata": RELEASE}))
    await ctx.annotate({ANNOTATION_UPGRADE_STRATEGY: record})
    assert await rancher.start_upgrade(ctx) == 5
    await STRATEGY.revert(ctx)


def test_record_holds_generation_and_strategy() -> None:
    rke = {"provisionGeneration": 4, "upgradeStrategy": {"b": 1, "a": 2}}
    note = rancher.record_cluster({"spec": {"rkeConfig": rke}}, stale=[])
    assert json.loads(note[ANNOTATION_UPGRADE_STRATEGY]) == rke


DRAIN_OPTIONS = {
    "enabled": True,
    "force": True,
    "ignoreDaemonSets": True,
    "deleteEmptyDirData": True,
    "preDrainHooks": [{"annotation": PRE}],
    "postDrainHooks": [{"annotation": POST}],
}


def hooks(*annotations: str) -> dict[str, Any]:
    return {"controlPlaneDrainOptions": {"preDrainHooks": [{"annotation": name} for name in annotations]}}


@pytest.mark.rule(
    "nodes: upgradeStrategy takes one node at a time for control plane and workers",
    "nodes: drainOptions of both roles have enabled, force, ignoreDaemonSets and deleteEmptyDirData",
    "nodes: drainOptions of both roles name the pre-drain and the post-drain hook once",
)
def test_strategy_takes_one_node_at_a_time_with_both_hooks() -> None:
    assert upgrade_strategy({}) == {
        "controlPlaneConcurrency": "1",
        "workerConcurrency": "1",
        "controlPlaneDrainOptions": DRAIN_OPTIONS,
        "workerDrainOptions": DRAIN_OPTIONS,
    }


@pytest.mark.rule("nodes: drainOptions of both roles name the pre-drain and the post-drain hook once")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param([], [PRE], id="no hooks"),
        pytest.param(["other/hook"], ["other/hook", PRE], id="another hook"),
        pytest.param([PRE], [PRE], id="our hook already"),
        pytest.param([PRE, "other/hook", PRE], ["other/hook", PRE], id="our hook twice"),
    ],
)
def test_other_hooks_stay(old: list[str], new: list[str]) -> None:
    found = upgrade_strategy({"upgradeStrategy": hooks(*old)})["controlPlaneDrainOptions"]["preDrainHooks"]
    assert found == [{"annotation": name} for name in new]


@pytest.mark.rule("nodes: drainOptions of both roles have enabled, force, ignoreDaemonSets and deleteEmptyDirData")
def test_other_fields_of_the_strategy_stay() -> None:
    old = {"workerConcurrency": "3", "future": 1, "workerDrainOptions": {"timeout": 60, "force": False}}
    new = upgrade_strategy({"upgradeStrategy": old})
    assert (new["workerConcurrency"], new["future"]) == ("1", 1)
    assert new["workerDrainOptions"] == DRAIN_OPTIONS | {"timeout": 60}


OUR_HOOK = {"workerDrainOptions": {"postDrainHooks": [{"annotation": POST}], "force": True}}


@pytest.mark.parametrize(
    ("recorded", "restored"),
    [
        pytest.param(None, None, id="none"),
        pytest.param("x", None, id="text"),
        pytest.param({"workerConcurrency": "2"}, {"workerConcurrency": "2"}, id="without hooks"),
        pytest.param(hooks("x"), hooks("x"), id="another hook"),
        pytest.param(hooks("x", PRE), hooks("x"), id="our hook and another"),
        pytest.param(OUR_HOOK, {"workerDrainOptions": {"force": True}}, id="our hook alone"),
        pytest.param({"workerDrainOptions": None}, {"workerDrainOptions": None}, id="null stays"),
    ],
)
def test_hooks_of_an_earlier_upgrade_are_not_restored(recorded: Any, restored: Any) -> None:
    assert without_hooks(recorded) == restored


@pytest.mark.parametrize("rke", [{"upgradeStrategy": None}, {"upgradeStrategy": {"workerDrainOptions": None}}])
def test_null_strategy_counts_as_absent(rke: dict[str, Any]) -> None:
    assert upgrade_strategy(rke)["workerDrainOptions"] == DRAIN_OPTIONS


@pytest.mark.parametrize(
    ("cluster", "requested", "counted"),
    [
        pytest.param({}, False, 0, id="no spec"),
        pytest.param({"spec": {"rkeConfig": None}}, False, 0, id="rkeConfig null"),
        pytest.param({"spec": {"rkeConfig": {"provisionGeneration": 4}}}, False, 4, id="a generation"),
        pytest.param({"spec": {"rkeConfig": {"upgradeStrategy": None}}}, False, 0, id="text"),
        pytest.param({"spec": {"rkeConfig": {"upgradeStrategy": hooks("x")}}}, False, 0, id="another hook"),
        pytest.param({"spec": {"rkeConfig": {"upgradeStrategy": hooks("x", PRE)}}}, True, 0, id="our hook"),
    ],
)
def test_incomplete_cluster_is_read(cluster: dict[str, Any], *, requested: bool, counted: int) -> None:
    assert has_hooks(cluster) is requested
    assert generation(cluster) == counted
    assert isinstance(rke_config(cluster), dict)
