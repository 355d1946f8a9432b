"""One patch per upgrade, whatever dies between it and its record; and its undoing, which disturbs nobody else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.harvester import RELEASE
from upgrade_manager.api.keys import ANNOTATION_UPGRADE_STRATEGY
from upgrade_manager.kube.errors import Conflict, Invalid
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import PROVISIONING_CLUSTERS, UPGRADE_PLANS
from upgrade_manager.nodes.upgrade_strategy import asks_us, upgrade_strategy
from upgrade_manager.pipeline import rancher
from upgrade_manager.pipeline.context import ReconcileContext
from upgrade_manager.pipeline.errors import MissingObject

if TYPE_CHECKING:
    from tests.support.harvester import Harvester
    from upgrade_manager.kube.objects import Object

OTHERS = {"controlPlaneConcurrency": "2", "controlPlaneDrainOptions": {"enabled": False, "timeout": 60}}


async def local(cluster: Harvester, *, rke: Object | None = None, kubernetes: str = "v1.32.4+rke2r1") -> None:
    spec = {"kubernetesVersion": kubernetes, "rkeConfig": rke if rke is not None else {"provisionGeneration": 4}}
    await cluster.put(PROVISIONING_CLUSTERS, {"metadata": {"name": "local", "namespace": "fleet-local"}, "spec": spec})


async def now(cluster: Harvester) -> Any:
    return (await cluster.find(PROVISIONING_CLUSTERS, "local", "fleet-local"))["spec"]


async def noted(cluster: Harvester) -> ReconcileContext:
    """A plan that has noted what the cluster looks like."""
    ctx = cluster.context(await cluster.plan(status={"releaseMetadata": RELEASE}))
    await ctx.annotate(rancher.original(await rancher.read_cluster(ctx), asking=[]))
    return ctx


async def again(cluster: Harvester) -> ReconcileContext:
    """The plan as a new process reads it."""
    return cluster.context(await cluster.client.get(UPGRADE_PLANS, "up"))


@pytest.mark.rule(
    "api: provisionGeneration is the value that the plan set on the Rancher cluster",
    "nodes: one patch sets kubernetesVersion, provisionGeneration + 1 and upgradeStrategy of fleet-local/local",
    "nodes: the cluster is patched once when the manager crashes between patch and record",
    "nodes: the cluster is patched once for an upgrade to the same Kubernetes version",
    "nodes: an earlier upgrade's strategy does not count as this upgrade's patch",
)
@pytest.mark.parametrize(
    ("rke", "wanted"),
    [
        pytest.param({"provisionGeneration": 4}, 5, id="one more"),
        pytest.param({}, 1, id="the first"),
        pytest.param({"provisionGeneration": 4, "upgradeStrategy": OTHERS}, 5, id="beside a strategy of others"),
        pytest.param(
            {"provisionGeneration": 4, "upgradeStrategy": upgrade_strategy({})},
            5,
            id="with our own strategy left over from an earlier upgrade",
        ),
    ],
)
@pytest.mark.parametrize("kubernetes", ["v1.32.4+rke2r1", RELEASE["kubernetes"]], ids=["another", "the same"])
async def test_the_cluster_is_patched_exactly_once(
    cluster: Harvester, rke: Object, wanted: int, kubernetes: str
) -> None:
    await local(cluster, rke=rke, kubernetes=kubernetes)
    assert await rancher.start(await noted(cluster)) == wanted
    spec = await now(cluster)
    assert spec["kubernetesVersion"] == RELEASE["kubernetes"]
    assert spec["rkeConfig"]["provisionGeneration"] == wanted
    assert asks_us({"spec": spec})
    # Killed between the patch and the record, any number of times.
    for _ in range(3):
        assert await rancher.start(await again(cluster)) == wanted
    assert await now(cluster) == spec


async def test_what_others_have_in_the_strategy_stays(cluster: Harvester) -> None:
    await local(cluster, rke={"upgradeStrategy": OTHERS, "registries": {"configs": {"x": {}}}})
    await rancher.start(await noted(cluster))
    rke = (await now(cluster))["rkeConfig"]
    assert rke["upgradeStrategy"]["controlPlaneDrainOptions"]["timeout"] == 60
    assert rke["registries"] == {"configs": {"x": {}}}


@pytest.mark.rule("pipeline: the Rancher cluster's upgradeStrategy is restored")
@pytest.mark.parametrize(
    "rke",
    [
        pytest.param({"provisionGeneration": 4}, id="none before"),
        pytest.param({"provisionGeneration": 4, "upgradeStrategy": OTHERS}, id="a strategy of others"),
        pytest.param({"provisionGeneration": 4, "upgradeStrategy": {}}, id="an empty one"),
        pytest.param({}, id="nothing of RKE before"),
    ],
)
async def test_the_old_strategy_comes_back_and_the_generation_stays(cluster: Harvester, rke: Object) -> None:
    await local(cluster, rke=rke)
    ctx = await noted(cluster)
    await rancher.start(ctx)
    for _ in range(2):
        await rancher.restore(await again(cluster))
    assert (await now(cluster))["rkeConfig"] == rke | {"provisionGeneration": rke.get("provisionGeneration", 0) + 1}


async def test_a_strategy_that_is_no_longer_ours_is_left_alone(cluster: Harvester) -> None:
    await local(cluster, rke={"upgradeStrategy": OTHERS})
    ctx = await noted(cluster)
    await rancher.restore(ctx)
    assert (await now(cluster))["rkeConfig"] == {"upgradeStrategy": OTHERS}


@pytest.mark.parametrize(
    "touch",
    [
        pytest.param({"metadata": {"labels": {"touched": "yes"}}}, id="something else of the object"),
        pytest.param({"spec": {"rkeConfig": {"registries": {"mirrors": {}}}}}, id="something else of RKE"),
    ],
)
async def test_a_start_does_not_mind_what_others_write_meanwhile(
    cluster: Harvester, overtaken: Overtaken, touch: Object
) -> None:
    await local(cluster)
    ctx = await noted(cluster)
    ctx.cluster = None
    overtaken.by(touch)
    assert await rancher.start(ctx) == 5
    assert asks_us({"spec": await now(cluster)})


@pytest.mark.parametrize(
    ("touch", "kept"),
    [
        pytest.param({"rkeConfig": {"provisionGeneration": 9}}, 9, id="the generation"),
        pytest.param({"rkeConfig": {"upgradeStrategy": {"workerConcurrency": "7"}}}, 4, id="the strategy"),
        pytest.param({"kubernetesVersion": "v1.33.0+rke2r1"}, 4, id="the version"),
        pytest.param({"rkeConfig": None}, None, id="all of it"),
    ],
)
async def test_a_start_that_others_overtake_in_what_it_changes_is_decided_anew(
    cluster: Harvester, touch: Object, kept: int | None
) -> None:
    await local(cluster)
    ctx = await noted(cluster)
    await cluster.client.patch(PROVISIONING_CLUSTERS, "local", MergePatch({"spec": touch}), namespace="fleet-local")
    with pytest.raises(Conflict):
        await rancher.start(ctx)
    spec = await now(cluster)
    assert not asks_us({"spec": spec})
    assert (spec.get("rkeConfig") or {}).get("provisionGeneration") == kept
    assert await rancher.start(await again(cluster)) == (kept or 0) + 1


async def test_a_change_that_is_refused_for_another_reason_is_no_conflict(
    cluster: Harvester, monkeypatch: pytest.MonkeyPatch
) -> None:
    await local(cluster)
    ctx = await noted(cluster)

    async def refused(*_: Any, **__: Any) -> None:
        raise Invalid("an admission webhook says no")

    monkeypatch.setattr(ReconcileContext, "patch", refused)
    with pytest.raises(Invalid, match="says no"):
        await rancher.start(ctx)


@pytest.mark.parametrize(
    ("asking", "left"),
    [pytest.param([], frozenset(), id="none"), pytest.param(["s1", "s2"], frozenset({"s1", "s2"}), id="two")],
)
async def test_questions_that_stood_before_are_noted_with_the_rest(
    cluster: Harvester, asking: list[str], left: frozenset[str]
) -> None:
    await local(cluster)
    ctx = cluster.context(await cluster.plan(status={"releaseMetadata": RELEASE}))
    await ctx.annotate(rancher.original(await rancher.read_cluster(ctx), asking=asking))
    assert rancher.left_over(await again(cluster)) == left


@pytest.mark.parametrize("names", ["7", '"s1"', '{"s1":1}', "[7,null]"])
async def test_a_list_of_questions_that_someone_broke_is_none(cluster: Harvester, names: str) -> None:
    ctx = cluster.context(await cluster.plan())
    await ctx.annotate({ANNOTATION_UPGRADE_STRATEGY: f'{{"provisionGeneration":4,"leftOver":{names}}}'})
    assert rancher.left_over(ctx) == frozenset()


class Overtaken:
    """Lets someone else write right after the cluster was read."""

    def __init__(self, cluster: Harvester, monkeypatch: pytest.MonkeyPatch) -> None:
        self._cluster = cluster
        self._find = ReconcileContext.find
        self._monkeypatch = monkeypatch

    def by(self, touch: Object) -> None:
        """From now on, by that change."""
        find, client = self._find, self._cluster.client

        async def overtaken(ctx: ReconcileContext, *args: Any, **more: Any) -> Any:
            found = await find(ctx, *args, **more)
            await client.patch(PROVISIONING_CLUSTERS, "local", MergePatch(touch), namespace="fleet-local")
            return found

        self._monkeypatch.setattr(ReconcileContext, "find", overtaken)


@pytest.fixture
def overtaken(cluster: Harvester, monkeypatch: pytest.MonkeyPatch) -> Overtaken:
    return Overtaken(cluster, monkeypatch)


async def test_an_undoing_does_not_mind_what_rancher_writes_meanwhile(cluster: Harvester, overtaken: Overtaken) -> None:
    await local(cluster)
    ctx = await noted(cluster)
    await rancher.start(ctx)
    overtaken.by({"metadata": {"labels": {"touched": "yes"}}})
    await rancher.restore(ctx)
    assert "upgradeStrategy" not in (await now(cluster))["rkeConfig"]


async def test_an_undoing_of_a_strategy_that_changes_meanwhile_is_a_conflict_and_no_error(
    cluster: Harvester, overtaken: Overtaken
) -> None:
    await local(cluster)
    ctx = await noted(cluster)
    await rancher.start(ctx)
    overtaken.by({"spec": {"rkeConfig": {"upgradeStrategy": {"workerConcurrency": "7"}}}})
    with pytest.raises(Conflict):
        await rancher.restore(ctx)
    assert (await now(cluster))["rkeConfig"]["upgradeStrategy"]["workerConcurrency"] == "7"


@pytest.mark.rule("pipeline: missing objects do not block deletion")
async def test_without_a_cluster_nothing_can_start_and_nothing_is_to_be_undone(cluster: Harvester) -> None:
    ctx = cluster.context(await cluster.plan(status={"releaseMetadata": RELEASE}))
    with pytest.raises(MissingObject, match="fleet-local/local"):
        await rancher.read_cluster(ctx)
    await ctx.annotate({ANNOTATION_UPGRADE_STRATEGY: '{"provisionGeneration":1,"upgradeStrategy":null}'})
    await rancher.restore(ctx)


@pytest.mark.parametrize("note", ["", "{", "null", "[]", "7", '{"provisionGeneration":"4"}'])
async def test_a_note_that_someone_broke_stops_nothing(cluster: Harvester, note: str) -> None:
    await local(cluster)
    ctx = cluster.context(await cluster.plan(status={"releaseMetadata": RELEASE}))
    await ctx.annotate({ANNOTATION_UPGRADE_STRATEGY: note})
    assert await rancher.start(ctx) == 5
    await rancher.restore(ctx)


def test_the_note_is_small_and_always_the_same() -> None:
    note = rancher.original(
        {"spec": {"rkeConfig": {"provisionGeneration": 4, "upgradeStrategy": {"b": 1, "a": 2}}}}, asking=[]
    )
    assert json.loads(note[ANNOTATION_UPGRADE_STRATEGY]) == {
        "provisionGeneration": 4,
        "upgradeStrategy": {"a": 2, "b": 1},
    }
