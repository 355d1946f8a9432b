from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cluster.nodes import OPTIONS, PRE_DRAIN
from tests.support.cluster.preflight import GIB, STATS, summary
from upgrade_manager.api.annotations import MAX_UNKNOWN
from upgrade_manager.api.keys import PREFIX
from upgrade_manager.api.remedy import remedy_text
from upgrade_manager.blockers.known_wait import CheckedNodeWait
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES, SECRETS, SETTINGS, VERSIONS
from upgrade_manager.pipeline.errors import BadCluster, MissingObject
from upgrade_manager.pipeline.node_upgrade.managed_nodes import unknown_pause_nodes
from upgrade_manager.pipeline.outcome import Completed, Failed, Waiting
from upgrade_manager.pipeline.phases.initialize import Initialize
from upgrade_manager.pipeline.selections import LOCAL_MACHINES, MANAGED_NODES

if TYPE_CHECKING:
    from tests.support.cluster.harvester import Harvester


async def prepared(cluster: Harvester, *, url: str = "https://x/a.iso", checksum: str = "", **setting: str) -> None:
    await put_version(cluster, "v1.7.0", isoURL=url, **({"isoChecksum": checksum} if checksum else {}))
    await cluster.put(SETTINGS, {"metadata": {"name": "server-version"}, **(setting or {"value": "v1.7.0-rc2"})})


async def put_version(cluster: Harvester, name: str, **spec: str) -> None:
    metadata = {"name": name, "namespace": "harvester-system"}
    await cluster.put(VERSIONS, {"metadata": metadata, "spec": {"isoURL": "https://x/a.iso", **spec}})


@pytest.mark.rule(
    "api: version names a Version in harvester-system",
    "api: previousVersion is Harvester's version before the upgrade",
    "api: singleNode is the node's name on a single-node cluster, else absent",
    "api: version is a snapshot of the Version's isoURL and isoChecksum",
    "pipeline: Initialize reads the Version",
    "pipeline: Initialize reads value or default of Setting server-version",
    "pipeline: exactly one managed node makes a single-node cluster",
    "pipeline: Initialize completes when preflight has passed",
)
async def test_version_running_version_and_cluster_are_recorded(cluster: Harvester) -> None:
    await prepared(cluster, checksum="ab" * 64)
    await cluster.nodes("n1", "n2")
    ctx = cluster.context(await cluster.plan())
    assert await Initialize().run(ctx) == Completed()
    assert ctx.status.difference() == {
        "version": {"isoURL": "https://x/a.iso", "isoChecksum": "ab" * 64},
        "previousVersion": "v1.7.0-rc2",
    }


@pytest.mark.rule(
    "api: singleNode is the node's name on a single-node cluster, else absent",
    "api: version is a snapshot of the Version's isoURL and isoChecksum",
    "pipeline: exactly one managed node makes a single-node cluster",
)
async def test_one_managed_node_makes_a_single_node_cluster(cluster: Harvester) -> None:
    await prepared(cluster, value="", default="v1.7.0-rc1")
    await cluster.nodes("n1")
    await cluster.nodes("unmanaged", **{"harvesterhci.io/managed": "false"})
    ctx = cluster.context(await cluster.plan())
    outcome = await Initialize().run(ctx)
    assert ctx.status["singleNode"] == "n1"
    assert ctx.status["previousVersion"] == "v1.7.0-rc1"
    assert ctx.status["version"] == {"isoURL": "https://x/a.iso"}
    assert outcome == Completed()


@pytest.mark.rule("pipeline: a node whose cordon would be refused fails the preflight")
@pytest.mark.parametrize(
    ("nodes", "cordoned", "held", "expected"),
    [
        pytest.param(["n1", "n2"], ["n2"], [], "n1: {n2}", id="two nodes, one cordoned"),
        pytest.param(["n1", "n2"], ["n2"], ["n2"], "", id="two nodes, one held by an earlier plan"),
        pytest.param(["n1", "n2", "n3"], ["n2", "n3"], [], "n1: {n2, n3}", id="three nodes"),
        pytest.param(["n1", "n2", "n3"], ["n2", "n3"], ["n3"], "", id="three nodes, one of them held"),
        pytest.param(["n1", "n2", "n3"], ["n2"], [], "", id="two others"),
        pytest.param(
            ["n1", "n2"],
            ["n1", "n2"],
            ["n1"],
            "n1: {n2}",
            id="held and cordoned",
        ),
        pytest.param(["n1"], ["n1"], [], "", id="a single node"),
    ],
)
async def test_last_schedulable_node_fails_the_preflight(
    cluster: Harvester, nodes: list[str], cordoned: list[str], held: list[str], expected: str
) -> None:
    await prepared(cluster)
    await cluster.nodes(*nodes)
    for node in nodes:
        await cluster.machine(node)
        annotations = {PRE_DRAIN: OPTIONS} if node in held else {}
        labels = {"rke.cattle.io/machine-name": f"m-{node}"}
        metadata = {"name": f"s-{node}", "namespace": "fleet-local", "labels": labels, "annotations": annotations}
        await cluster.put(SECRETS, {"metadata": metadata, "type": "rke.cattle.io/machine-plan", "data": {}})
    for node in cordoned:
        await cluster.client.patch(NODES, node, MergePatch({"spec": {"unschedulable": True}}))
    result = await Initialize().run(cluster.context(await cluster.plan()))
    node, _, rest = expected.partition(": {")
    names = rest.removesuffix("}")
    text = (
        f"no other node is schedulable ({names}: cordoned), so that Harvester refuses its cordon. "
        "Uncordon another node: kubectl uncordon n2"
    )
    failed = Failed(cause=f"node {node}: {text}", advice="Then retry")
    assert result == (failed if expected else Completed())


@pytest.mark.rule("nodes: a pause of a node whose upgrade has started is a warning at admission and an event")
async def test_pause_that_comes_too_late_is_an_event(cluster: Harvester) -> None:
    await cluster.nodes("n1", "n2")
    plan = await cluster.plan(spec={"version": "v1", "nodeUpgradeOption": {"pauseNodes": ["n1", "n2"]}})
    states = {"n1": {"state": "PostDraining"}, "n2": {"state": "UpgradePaused"}}
    ctx = cluster.context({**plan, "status": {"nodeUpgradeStatuses": states}})
    assert unknown_pause_nodes(ctx, *await ctx.watch_all(MANAGED_NODES, LOCAL_MACHINES)) == ""
    late = "Node n1 is in pauseNodes and is not paused: its upgrade has started (PostDraining)"
    assert cluster.recorder.recorded == [("PauseIgnored", late)]


@pytest.mark.rule("nodes: a managed label that is missing for a moment changes nothing")
@pytest.mark.parametrize("managed", [["n1"], ["n1", "n2"]], ids=["one node", "several nodes"])
async def test_machine_of_an_unmanaged_node_is_an_error(cluster: Harvester, managed: list[str]) -> None:
    await prepared(cluster)
    await cluster.nodes(*managed)
    for node in (*managed, "n3"):
        await cluster.machine(node)
    ctx = cluster.context(await cluster.plan())
    with pytest.raises(BadCluster, match=r"^Node n3 would be left out: its Node does not exist, but Machine .* does\."):
        await Initialize().run(ctx)


@pytest.mark.rule(
    "api: with image set no Version is read", "pipeline: Initialize reads no Version when spec.image is set"
)
async def test_image_plan_reads_no_version(cluster: Harvester) -> None:
    await cluster.put(SETTINGS, {"metadata": {"name": "server-version"}, "value": "v1.6.1"})
    await cluster.nodes("n1", "n2")
    ctx = cluster.context(await cluster.plan(spec={"image": "iso", "version": "none"}))
    assert await Initialize().run(ctx) == Completed()
    assert ctx.status["version"] is None


@pytest.mark.rule(
    "api: version names a Version in harvester-system", "pipeline: preflight checks run last in Initialize"
)
@pytest.mark.parametrize(
    ("spec", "setting", "nodes", "error", "text"),
    [
        pytest.param({"version": "v9"}, {}, ["n1"], MissingObject, "harvester-system/v9 does not exist", id="Version"),
        pytest.param({"version": "../x"}, {}, ["n1"], MissingObject, "does not exist", id="no name of a Version"),
        pytest.param({}, {"url": "", "value": "v1"}, ["n1"], MissingObject, "lacks spec.isoURL", id="isoURL"),
        pytest.param({}, {"value": ""}, ["n1"], MissingObject, "Setting server-version lacks a value", id="Setting"),
        pytest.param({}, {}, [], BadCluster, "harvesterhci.io/managed=true", id="managed nodes"),
    ],
)
async def test_missing_object_is_reported_and_awaited(
    cluster: Harvester, spec: Any, setting: dict[str, str], nodes: list[str], error: type[Exception], text: str
) -> None:
    await prepared(cluster, **setting)
    await cluster.nodes(*nodes)
    # Stored before the schema had patterns.
    ctx = cluster.context(await cluster.plan() | ({"spec": spec} if spec else {}))
    with pytest.raises(error, match=text):
        await Initialize().run(ctx)
    assert (cluster.kubelets.requests, cluster.probe.requests) == ([], [])


@pytest.mark.rule(
    "api: Initialize can fail",
    "pipeline: preflight checks run last in Initialize",
    "pipeline: Initialize fails when preflight fails",
)
@pytest.mark.parametrize(
    ("answer", "outcome", "text"),
    [
        pytest.param(summary(used=290 * GIB), Failed, "node n1 (101.0 % > 85 %)", id="no"),
        pytest.param(503, Waiting, "waiting for the kubelet of node n1", id="kubelet not ready"),
    ],
)
async def test_preflight_decides(cluster: Harvester, answer: Any, outcome: type[Waiting | Failed], text: str) -> None:
    await prepared(cluster)
    await cluster.nodes("n1")
    cluster.kubelets.responses = {("n1", STATS): answer}
    ctx = cluster.context(await cluster.plan())
    found = await Initialize().run(ctx)
    assert isinstance(found, outcome)
    assert text in (found.cause if isinstance(found, Failed) else found.message)
    assert ctx.status["previousVersion"] == "v1.7.0-rc2"


@pytest.mark.parametrize(
    ("status", "why", "remedy"),
    [
        pytest.param(503, "does not respond", "(1) Check the console of node n1, and start it (2)", id="silent"),
        pytest.param(403, "cannot be read", "Grant get on nodes/stats", id="forbidden"),
        pytest.param(401, "cannot be read", "Set authentication.webhook.enabled", id="unauthorized"),
    ],
)
async def test_pending_check_has_the_remedy(cluster: Harvester, status: int, why: str, remedy: str) -> None:
    await prepared(cluster)
    await cluster.nodes("n1")
    cluster.kubelets.responses = {("n1", STATS): status}
    found = await Initialize().run(cluster.context(await cluster.plan()))
    assert isinstance(found, Waiting)
    (wait,) = found.waits
    assert isinstance(wait, CheckedNodeWait)
    assert wait.detail.startswith(f"its kubelet {why} (")
    assert remedy in remedy_text(wait.remedies)


@pytest.mark.rule("api: once the snapshot is recorded the Version is not read again")
async def test_recorded_version_counts_after_the_version_is_deleted(cluster: Harvester) -> None:
    await prepared(cluster)
    await cluster.nodes("n1")
    cluster.kubelets.responses = {("n1", STATS): 503}
    ctx = cluster.context(await cluster.plan())
    assert isinstance(await Initialize().run(ctx), Waiting)
    await cluster.client.delete(VERSIONS, "v1.7.0", namespace="harvester-system")
    assert isinstance(await Initialize().run(ctx), Waiting)
    assert ctx.status["version"] == {"isoURL": "https://x/a.iso"}


@pytest.mark.rule(
    "pipeline: Initialize fails when the Version cannot be reached from the running version",
    "pipeline: Initialize fails when all nodes run the version already",
    "pipeline: a pair of releases whose steps are not known is refused",
    "pipeline: spec.force skips the version check",
)
@pytest.mark.parametrize("force", [False, True], ids=["guarded", "forced"])
@pytest.mark.parametrize(
    ("target", "minimum", "running", "denied"),
    [
        pytest.param("v1.7.0", "v1.7.0-rc1", "v1.7.0-rc2", "", id="supported"),
        pytest.param("v1.8.0", "v1.7.0", "v1.7.1", "", id="supported pair"),
        pytest.param("v1.9.0", "", "v1.7.1", "the steps between these releases are unknown", id="unknown pair"),
        pytest.param("v1.7.0", "", "v1.6.1", "the step from v1.6 to v1.7 is not supported", id="refused pair"),
        pytest.param("v1.6.0", "", "v1.6.1", "downgrades are not supported", id="downgrade"),
        pytest.param("v1.7.0", "v1.6.2", "v1.6.1", "upgrade to v1.6.2 or later first", id="minimum version"),
        pytest.param("v1.6.1", "", "v1.6.1", "Nothing to do: all 2 nodes run v1.6.1", id="the running version"),
        pytest.param("v1.7.0", "", "v1.7.0", "", id="nodes that a failed upgrade left behind"),
        pytest.param("daily", "v1.9.0", "v1.6.1", "daily is not a release, and its steps are unknown", id="build"),
    ],
)
async def test_version_is_checked_before_the_download(
    cluster: Harvester, target: str, minimum: str, running: str, denied: str, *, force: bool
) -> None:
    await put_version(cluster, target, minUpgradableVersion=minimum)
    await cluster.put(SETTINGS, {"metadata": {"name": "server-version"}, "value": running})
    await cluster.nodes("n1", "n2")
    ctx = cluster.context(await cluster.plan(spec={"version": target, "force": force}))
    result = await Initialize().run(ctx)
    if force or not denied:
        assert result == Completed()
    else:
        assert isinstance(result, Failed)
        assert result.cause.startswith((f"upgrade from {running} to {target} is not allowed: ", "Nothing to do: "))
        assert denied in result.cause
        assert cluster.kubelets.requests == []


@pytest.mark.rule("api: an image outside harvester-system fails the plan in Initialize with the remedy")
@pytest.mark.parametrize(
    ("named", "cause"),
    [
        pytest.param("images/mine", "mount images in namespace harvester-system. Import the ISO there", id="elsewhere"),
        pytest.param("a/b/c", "'a/b/c' is not a valid VirtualMachineImage name. Create a plan with", id="no name"),
        pytest.param("../x", "is not a valid VirtualMachineImage name", id="a way up the tree"),
    ],
)
async def test_unusable_image_name_fails_the_plan(cluster: Harvester, named: str, cause: str) -> None:
    await prepared(cluster)
    await cluster.nodes("n1")
    # The schema refuses the last two; a plan may be older.
    ctx = cluster.context(await cluster.plan() | {"spec": {"image": named}})
    result = await Initialize().run(ctx)
    assert isinstance(result, Failed)
    assert cause in result.cause
    assert cluster.kubelets.requests == []


NEAREST = "is unknown and ignored. The nearest known annotation is"


@pytest.mark.rule(
    "api: an unknown annotation is a Warning event that names the nearest known key",
    "api: an invalid value of a webhook's annotation is a Warning event",
)
@pytest.mark.parametrize(
    ("annotation", "value", "reason", "text"),
    [
        ("min-certs-expiration-in-days", "9", "AnnotationUnknown", f"{NEAREST} {PREFIX}/min-certs-expiration-in-day"),
        ("allow-deletion", "yes", "AnnotationInvalid", 'is \'yes\'. Set it to "true" or "false"; it has no effect'),
    ],
)
async def test_annotation_without_effect_is_reported(
    cluster: Harvester, annotation: str, value: str, reason: str, text: str
) -> None:
    await prepared(cluster)
    await cluster.nodes("n1")
    raw = await cluster.plan()
    raw["metadata"]["annotations"] = {f"{PREFIX}/{annotation}": value, f"{PREFIX}/skip-webhook": "true", "a.org/a": "b"}
    assert await Initialize().run(cluster.context(raw)) == Completed()
    assert cluster.recorder.recorded[0] == (reason, f"Annotation {PREFIX}/{annotation} {text}")


async def test_first_of_many_unknown_annotations_are_reported(cluster: Harvester) -> None:
    await prepared(cluster)
    await cluster.nodes("n1")
    raw = await cluster.plan()
    raw["metadata"]["annotations"] = {f"{PREFIX}/made-up-{number:04}": "" for number in range(8000)}
    assert await Initialize().run(cluster.context(raw)) == Completed()
    reported = [text for reason, text in cluster.recorder.recorded if reason == "AnnotationUnknown"]
    assert len(reported) == MAX_UNKNOWN
    assert f"Annotation {PREFIX}/made-up-0000 is unknown" in reported[0]


MANY = [f"x{i:02}" for i in range(12)]
UNKNOWN = "pauseNodes lists unknown node{} {}; ignored"


@pytest.mark.parametrize(
    ("listed", "unknown"),
    [
        pytest.param([], "", id="an empty list"),
        pytest.param(["n1", "n2"], "", id="names of nodes"),
        pytest.param(["n1", "n7"], "n7", id="unknown"),
        pytest.param(["foreign"], "foreign", id="unmanaged node"),
        pytest.param(MANY, ", ".join(MANY[:10]) + " and 2 more", id="many"),
    ],
)
async def test_unknown_pause_nodes_are_reported(cluster: Harvester, listed: list[str], unknown: str) -> None:
    await cluster.nodes("n1", "n2")
    await cluster.nodes("foreign", **{"harvesterhci.io/managed": "false"})
    spec = {"version": "v1", "nodeUpgradeOption": {"pauseNodes": listed}}
    ctx = cluster.context(await cluster.plan(spec=spec))
    text = UNKNOWN.format("s" if "," in unknown else "", unknown) if unknown else ""
    assert unknown_pause_nodes(ctx, *await ctx.watch_all(MANAGED_NODES, LOCAL_MACHINES)) == text
    assert cluster.recorder.recorded == ([("PauseNodesUnknown", text)] if unknown else [])


@pytest.mark.rule("nodes: a managed label that is missing for a moment changes nothing")
async def test_paused_node_without_the_label_is_known_by_its_machine(cluster: Harvester) -> None:
    await cluster.nodes("n1", **{"harvesterhci.io/managed": "false"})
    await cluster.machine("n1")
    ctx = cluster.context(await cluster.plan(spec={"version": "v1", "nodeUpgradeOption": {"pauseNodes": ["n1"]}}))
    assert unknown_pause_nodes(ctx, *await ctx.watch_all(MANAGED_NODES, LOCAL_MACHINES)) == ""


async def test_each_list_of_unknown_pause_nodes_is_one_event(cluster: Harvester) -> None:
    await cluster.nodes("n1")
    for number, listed in enumerate((["x"], ["x"], ["y", "x"], ["x", "y"])):
        spec = {"version": "v1", "nodeUpgradeOption": {"pauseNodes": listed}}
        raw = await cluster.plan(f"up-{number}", spec=spec)
        raw["metadata"] |= {"name": "up", "uid": "u"}
        ctx = cluster.context(raw)
        unknown_pause_nodes(ctx, *await ctx.watch_all(MANAGED_NODES, LOCAL_MACHINES))
    first, second, third, fourth = cluster.recorder.names
    assert first == second != third == fourth
