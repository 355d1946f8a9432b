"""The patch of Rancher's cluster, made once whatever crashes."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock

import pytest

from tests.support.cluster.harvester import RELEASE
from upgrade_manager.api.keys import ANNOTATION_ORIGINAL_STRATEGY, ANNOTATION_POST_HOOK, ANNOTATION_PRE_HOOK
from upgrade_manager.facts.drain_hooks import has_hooks
from upgrade_manager.kube import objects
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import Conflict, Invalid
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import PROVISIONING_CLUSTERS, SECRETS, UPGRADE_PLANS
from upgrade_manager.pipeline.context import ReconcileContext
from upgrade_manager.pipeline.errors import MissingObject
from upgrade_manager.pipeline.node_upgrade.effects import remove_acknowledgements
from upgrade_manager.pipeline.settings import overrides, rancher
from upgrade_manager.pipeline.settings.giving_back import give_back
from upgrade_manager.pipeline.settings.rancher import generation, rke_config
from upgrade_manager.pipeline.settings.upgrade_strategy import with_hooks, without_hooks
from upgrade_manager.runtime.time_limit import RECONCILE_TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.cluster.harvester import Harvester
    from upgrade_manager.kube.objects import Object

    Overtaken = Callable[[Object], None]

OTHERS = {"controlPlaneConcurrency": "2", "controlPlaneDrainOptions": {"enabled": False, "timeout": 60}}


async def local(cluster: Harvester, *, rke: Object | None = None, kubernetes: str = "v1.32.4+rke2r1") -> None:
    spec = {"kubernetesVersion": kubernetes, "rkeConfig": rke if rke is not None else {"provisionGeneration": 4}}
    await cluster.put(PROVISIONING_CLUSTERS, {"metadata": {"name": "local", "namespace": "fleet-local"}, "spec": spec})


async def stored(cluster: Harvester) -> Any:
    """Return Rancher's cluster."""
    return await cluster.find(PROVISIONING_CLUSTERS, "local", "fleet-local")


async def now(cluster: Harvester) -> Any:
    return (await stored(cluster))["spec"]


async def change(cluster: Harvester, fields: Object) -> Object:
    """Patch Rancher's cluster as others do."""
    return await cluster.client.patch(PROVISIONING_CLUSTERS, "local", MergePatch(fields), namespace="fleet-local")


async def annotate(cluster: Harvester, value: str | None) -> Object:
    """Change the annotation of the original strategy as others do."""
    return await change(cluster, {"metadata": {"annotations": {ANNOTATION_ORIGINAL_STRATEGY: value}}})


async def annotation(cluster: Harvester) -> str:
    return objects.annotations_of(await stored(cluster))[ANNOTATION_ORIGINAL_STRATEGY]


async def recorded(cluster: Harvester, rke: Object | None = None, **more: str) -> ReconcileContext:
    """Create Rancher's cluster and a plan on which it is recorded."""
    await local(cluster, rke=rke, **more)
    ctx = cluster.context(await cluster.plan(status={"releaseMetadata": RELEASE}))
    await overrides.record_originals(ctx)
    return ctx


async def again(cluster: Harvester) -> ReconcileContext:
    """Return the plan as a new process reads it."""
    return cluster.context(await cluster.client.get(UPGRADE_PLANS, "up"))


async def start(ctx: ReconcileContext) -> int:
    """Start the upgrade unless it is started, as NodeUpgrade does; return the recorded generation."""
    local: Any = await ctx.client.find(PROVISIONING_CLUSTERS, "local", namespace="fleet-local")
    target = rancher.next_generation(ctx, local, has_started=False)
    if target is not None:
        ctx.status["provisionGeneration"] = target
        overrides.refresh_strategy(ctx, local)
        await ctx.persist()
        original = (overrides.strategy_entry(ctx) or {}).get("original")
        await rancher.start_upgrade(ctx, local, original=original)
    return int(ctx.status["provisionGeneration"])


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
        pytest.param({"provisionGeneration": 4, "upgradeStrategy": with_hooks({})}, 5, id="with stale hooks"),
    ],
)
@pytest.mark.parametrize("kubernetes", ["v1.32.4+rke2r1", RELEASE["kubernetes"]], ids=["another", "the same"])
async def test_cluster_is_patched_once(cluster: Harvester, rke: Object, target: int, kubernetes: str) -> None:
    assert await start(await recorded(cluster, rke, kubernetes=kubernetes)) == target
    spec = await now(cluster)
    assert spec["kubernetesVersion"] == RELEASE["kubernetes"]
    assert spec["rkeConfig"]["provisionGeneration"] == target
    assert has_hooks((spec.get("rkeConfig") or {}).get("upgradeStrategy"))
    # Killed between the patch and the record, any number of times.
    for _ in range(3):
        assert await start(await again(cluster)) == target
    assert await now(cluster) == spec


async def test_start_keeps_other_fields(cluster: Harvester) -> None:
    rke = {"upgradeStrategy": OTHERS, "registries": {"configs": {"x": {}}}}
    await start(await recorded(cluster, rke))
    rke = (await now(cluster))["rkeConfig"]
    assert rke["upgradeStrategy"]["controlPlaneDrainOptions"]["timeout"] == 60
    assert rke["registries"] == {"configs": {"x": {}}}


@pytest.mark.parametrize(
    "touch",
    [
        pytest.param({"metadata": {"labels": {"touched": "yes"}}}, id="something else of the object"),
        pytest.param({"spec": {"rkeConfig": {"registries": {"mirrors": {}}}}}, id="something else of RKE"),
    ],
)
async def test_start_ignores_other_writes(cluster: Harvester, overtaken: Overtaken, touch: Object) -> None:
    ctx = await recorded(cluster)
    overtaken(touch)
    assert await start(ctx) == 5
    assert has_hooks((await now(cluster))["rkeConfig"]["upgradeStrategy"])


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
    before: Any = await ctx.client.find(PROVISIONING_CLUSTERS, "local", namespace="fleet-local")
    ctx.status["provisionGeneration"] = rancher.next_generation(ctx, before, has_started=False)
    await change(cluster, {"spec": touch})
    with pytest.raises(Conflict):
        await rancher.start_upgrade(ctx, before, original=None)
    spec = await now(cluster)
    assert not has_hooks((spec.get("rkeConfig") or {}).get("upgradeStrategy"))
    assert (spec.get("rkeConfig") or {}).get("provisionGeneration") == kept
    assert await start(await again(cluster)) == (kept or 0) + 1


@pytest.mark.parametrize(
    "touch",
    [
        pytest.param({"metadata": {"annotations": {"example.com/x": "y"}}}, id="the first annotation"),
        pytest.param({"spec": {"rkeConfig": {"registries": {"mirrors": {}}}}}, id="the first member"),
    ],
)
async def test_start_conflicts_with_writes_to_its_parents(cluster: Harvester, touch: Object) -> None:
    ctx = await recorded(cluster, {})
    before = await stored(cluster)
    ctx.status["provisionGeneration"] = 1
    await change(cluster, touch)
    with pytest.raises(Conflict):
        await rancher.start_upgrade(ctx, before, original=None)
    assert await start(await again(cluster)) == 1


async def test_refusal_for_another_reason_is_not_a_conflict(
    cluster: Harvester, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx = await recorded(cluster)
    monkeypatch.setattr(ReconcileContext, "patch", AsyncMock(side_effect=Invalid("an admission webhook says no")))
    with pytest.raises(Invalid, match="says no"):
        await start(ctx)


@pytest.fixture
def overtaken(cluster: Harvester, monkeypatch: pytest.MonkeyPatch) -> Overtaken:
    """Return a function that lets each read of Rancher's cluster be followed by this patch."""
    find = Client.find

    def overtake(touch: Object) -> None:
        async def find_and_touch(client: Client, *args: Any, **more: Any) -> Any:
            found = await find(client, *args, **more)
            await change(cluster, touch)
            return found

        monkeypatch.setattr(Client, "find", find_and_touch)

    return overtake


@pytest.mark.rule("pipeline: missing objects do not block deletion")
async def test_missing_cluster_fails_the_start_and_not_the_revert(cluster: Harvester) -> None:
    ctx = await recorded(cluster)
    await cluster.client.delete(PROVISIONING_CLUSTERS, "local", namespace="fleet-local")
    with pytest.raises(MissingObject) as error:
        await rancher.watched_cluster(ctx)
    assert str(error.value) == (
        "Cluster fleet-local/local (provisioning.cattle.io) does not exist. Rancher creates it; show Rancher's log: "
        "kubectl -n cattle-system logs -l app=rancher --tail=100 --prefix --timestamps"
    )
    await give_back(ctx, keep_strategy=False)
    assert ctx.status["ledger"] == []
    assert cluster.recorder.recorded == []


@pytest.mark.rule("nodes: the next plan takes over, and gives the first plan's original strategy back")
@pytest.mark.parametrize(
    ("text", "original"),
    [
        pytest.param('{"uid":"x","upgradeStrategy":{"workerConcurrency":"4"}}', {"workerConcurrency": "4"}, id="valid"),
        pytest.param('{"uid":"x","upgradeStrategy":null}', None, id="no strategy before"),
        *(
            pytest.param(invalid, without_hooks(with_hooks({})), id=f"invalid: {invalid}")
            for invalid in ("", "{", "null", "[]", "7", '{"uid":"x"}')
        ),
    ],
)
async def test_original_of_an_earlier_plan_is_inherited(cluster: Harvester, text: str, original: Any) -> None:
    await local(cluster, rke={"provisionGeneration": 4, "upgradeStrategy": with_hooks({})})
    await annotate(cluster, text)
    ctx = cluster.context(await cluster.plan(status={"releaseMetadata": RELEASE}))
    await overrides.record_originals(ctx)
    assert await start(ctx) == 5
    await give_back(ctx, keep_strategy=False)
    assert (await now(cluster))["rkeConfig"].get("upgradeStrategy") == original


@pytest.mark.rule("nodes: the next plan takes over, and gives the first plan's original strategy back")
async def test_lost_original_is_found_in_the_newest_ended_plan(cluster: Harvester) -> None:
    await local(cluster, rke={"provisionGeneration": 4, "upgradeStrategy": with_hooks({})})
    strategy = {"object": "Cluster fleet-local/local", "field": "spec.rkeConfig.upgradeStrategy"}
    interval = {"object": "Setting longhorn-system/x", "field": "value", "original": "600"}
    for name, originals in (
        ("oldest", [strategy | {"original": {"workerConcurrency": "9"}}]),
        ("newer", [interval, strategy | {"original": OTHERS}]),
        ("newest", [interval]),
    ):
        await cluster.plan(name, status={"originals": originals})
        # The API server's timestamps have seconds.
        await asyncio.sleep(1)
    ctx = cluster.context(await cluster.plan(status={"releaseMetadata": RELEASE}))
    await overrides.record_originals(ctx)
    assert await start(ctx) == 5
    assert json.loads(await annotation(cluster))["upgradeStrategy"] == OTHERS
    await give_back(ctx, keep_strategy=False)
    assert (await now(cluster))["rkeConfig"]["upgradeStrategy"] == OTHERS


@pytest.mark.rule("nodes: a thousand acknowledgements are removed within one reconcile")
async def test_acknowledgements_are_removed_within_one_reconcile(
    cluster: Harvester, monkeypatch: pytest.MonkeyPatch
) -> None:
    annotations = {ANNOTATION_PRE_HOOK: "x", ANNOTATION_POST_HOOK: "x"}
    place = {"namespace": "fleet-local", "annotations": annotations}
    secrets = [await cluster.put(SECRETS, {"metadata": {"name": f"n{n}", **place}}) for n in range(1000)]
    patch = Client.patch

    async def slow(*given: Any, **more: Any) -> Any:
        await asyncio.sleep(0.3)
        return await patch(*given, **more)

    monkeypatch.setattr(Client, "patch", slow)
    async with asyncio.timeout(RECONCILE_TIMEOUT):
        await remove_acknowledgements(cluster.context(await cluster.plan()), secrets)
    found = (await cluster.client.list(SECRETS, namespace="fleet-local")).items
    assert [objects.annotations_of(secret) for secret in found] == [{}] * 1000


@pytest.mark.parametrize(
    ("cluster", "counted"),
    [
        pytest.param({}, 0, id="no spec"),
        pytest.param({"spec": {"rkeConfig": None}}, 0, id="rkeConfig null"),
        pytest.param({"spec": {"rkeConfig": {"provisionGeneration": 4}}}, 4, id="a generation"),
    ],
)
def test_incomplete_cluster_is_read(cluster: dict[str, Any], *, counted: int) -> None:
    assert generation(cluster) == counted
    assert isinstance(rke_config(cluster), dict)


@pytest.mark.parametrize("raised", [0, 1, 5], ids=["not yet", "by others", "several times"])
async def test_hooks_of_an_earlier_plan_do_not_count_as_the_start(cluster: Harvester, raised: int) -> None:
    ctx = await recorded(cluster)
    began = await start(ctx)
    metadata = {"annotations": {ANNOTATION_ORIGINAL_STRATEGY: json.dumps({"uid": "earlier"})}}
    earlier = {"metadata": metadata, "spec": {"rkeConfig": {"provisionGeneration": began + raised}}}
    await change(cluster, earlier)
    assert await start(ctx) == began + raised + 1
    assert ctx.owner.uid in await annotation(cluster)


async def test_foreign_annotation_after_the_start_raises_no_generation(cluster: Harvester) -> None:
    ctx = await recorded(cluster)
    await start(ctx)
    found = await annotate(cluster, json.dumps({"uid": "earlier"}))
    assert rancher.next_generation(ctx, found, has_started=True) is None
    await rancher.keep_original(ctx, found, overrides.strategy_entry(ctx))
    assert ctx.owner.uid in await annotation(cluster)


@pytest.mark.rule("nodes: the cluster is patched once when the manager crashes between patch and record")
@pytest.mark.parametrize(
    ("spec", "started", "target"),
    [
        pytest.param({}, False, None, id="the annotation"),
        pytest.param({"rkeConfig": {"upgradeStrategy": None}}, False, 6, id="the hooks too"),
        pytest.param({"rkeConfig": {"upgradeStrategy": None}}, True, None, id="the hooks too, a node has started"),
        pytest.param({"rkeConfig": {"provisionGeneration": 4}}, False, 5, id="the generation too"),
        pytest.param({"kubernetesVersion": "v1.32.4+rke2r1"}, False, 6, id="the version too"),
    ],
)
async def test_next_generation_after_others_have_removed(
    cluster: Harvester, spec: Object, target: int | None, *, started: bool
) -> None:
    ctx = await recorded(cluster)
    await start(ctx)
    removed = {"metadata": {"annotations": {ANNOTATION_ORIGINAL_STRATEGY: None}}, "spec": spec}
    await cluster.client.patch(PROVISIONING_CLUSTERS, "local", MergePatch(removed), namespace="fleet-local")
    local = await cluster.find(PROVISIONING_CLUSTERS, "local", "fleet-local")
    assert rancher.next_generation(ctx, local, has_started=started) == target


@pytest.mark.rule("nodes: the cluster is patched once when the manager crashes between patch and record")
@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"rkeConfig": {"provisionGeneration": 4}}, id="the generation"),
        pytest.param({"rkeConfig": {"upgradeStrategy": None}}, id="the hooks"),
        pytest.param({"kubernetesVersion": "v1.32.4+rke2r1"}, id="the version"),
    ],
)
async def test_annotation_proves_the_patch_after_a_revert(cluster: Harvester, spec: Object) -> None:
    ctx = await recorded(cluster)
    await start(ctx)
    assert rancher.next_generation(ctx, await change(cluster, {"spec": spec}), has_started=False) is None


@pytest.mark.parametrize(
    ("annotations", "names", "original"),
    [
        pytest.param({}, {}, OTHERS, id="recorded"),
        pytest.param({ANNOTATION_ORIGINAL_STRATEGY: None}, {}, OTHERS, id="others removed the annotation"),
        pytest.param({}, {"ledger": None}, OTHERS, id="without a record, of the annotation"),
    ],
)
async def test_original_strategy_is_recorded_again(
    cluster: Harvester, annotations: Object, names: Object, original: Object
) -> None:
    ctx = await recorded(cluster, {"provisionGeneration": 4, "upgradeStrategy": OTHERS})
    await start(ctx)
    patch = MergePatch({"metadata": {"annotations": annotations}})
    await cluster.client.patch(PROVISIONING_CLUSTERS, "local", patch, namespace="fleet-local")
    for field, value in names.items():
        ctx.status[field] = value
    overrides.refresh_strategy(ctx, await cluster.find(PROVISIONING_CLUSTERS, "local", "fleet-local"))
    entry = overrides.strategy_entry(ctx) or {}
    assert (entry["original"], entry["applied"]) == (original, with_hooks(OTHERS))
