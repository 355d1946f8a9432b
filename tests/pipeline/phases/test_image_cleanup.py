from __future__ import annotations

import asyncio
import gzip
from base64 import b64decode
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from hack.virtual_time import virtual_now
from tests.support.cluster.harvester import RELEASE
from tests.support.managers.phase_results import shown
from upgrade_manager.api.conditions import find_condition
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.api.status import record_phase
from upgrade_manager.blockers.wait import ServiceWait
from upgrade_manager.facts.job_state import SUSPENDED
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import DEPLOYMENTS, ENDPOINT_SLICES, JOBS, NODES, PODS, SECRETS, SUC_PLANS
from upgrade_manager.pipeline.errors import BadCluster
from upgrade_manager.pipeline.outcome import Completed, Waiting
from upgrade_manager.pipeline.phases.image_cleanup import ImageCleanup
from upgrade_manager.release.errors import BadRepository
from upgrade_manager.resources.jobs import restore_job

if TYPE_CHECKING:
    from tests.support.cluster.harvester import Harvester
    from upgrade_manager.pipeline.context import ReconcileContext

CONSOLE = "Check the console of node n1, and start it"
FALLBACK = "Find out on node n1 why it booted the fallback: journalctl -b -1 --no-pager -n 100"
AGENT = "Show the agent's log on node n1: journalctl -u rancher-system-agent --no-pager -n 100"
ARCHIVE = "harvester-iso/bundle/harvester/images-lists-archive"
OLD, NEW = f"{ARCHIVE}/v1.6.1/image_list_all.txt", f"{ARCHIVE}/current/image_list_all.txt"


async def serving(cluster: Harvester, *, is_ready: bool) -> None:
    labels = {"kubernetes.io/service-name": "up-repo"}
    endpoint = {"addresses": ["10.0.0.1"], "conditions": {"ready": is_ready}}
    owner = {"apiVersion": "v1", "kind": "Service", "name": "up-repo", "uid": "s", "controller": True}
    metadata = {"name": "up-repo-x", "namespace": "harvester-system", "labels": labels, "ownerReferences": [owner]}
    await cluster.put(ENDPOINT_SLICES, {"metadata": metadata, "addressType": "IPv4", "endpoints": [endpoint]})


async def prepared(
    cluster: Harvester, old: bytes | int | Exception = b"a/b:1\n", new: bytes | int | Exception = b"a/b:2\n"
) -> ReconcileContext:
    """Serve the image lists of both releases to one node."""
    await cluster.nodes("n1")
    await serving(cluster, is_ready=True)
    cluster.files.answers = {OLD: old, NEW: new}
    began = record_phase(None, "ImageCleaning", virtual_now())
    status = {"releaseMetadata": RELEASE, "previousVersion": "v1.6.1", "phaseTransitionTimestamps": began}
    return cluster.context(await cluster.plan(status=status))


@pytest.mark.rule(
    "pipeline: ImageCleanup fetches the image lists of the previous and the new release",
    "pipeline: lists are in images-lists-archive, the old one by previous version, the new one in current",
)
async def test_plan_with_the_old_images_is_created_once(cluster: Harvester) -> None:
    ctx = await prepared(cluster, b"a/b:1\na/c:1\nrancher/harvester-upgrade:1\n", b"a/b:2\na/c:1\n")
    for _ in range(2):
        assert isinstance(await ImageCleanup().run(ctx), Waiting)
    assert await cluster.names(SUC_PLANS) == ["up-image-cleanup"]
    assert len(await cluster.names(SECRETS, "cattle-system")) == 1
    assert await handed(cluster) == ["a/b:1"]


def images(count: int) -> bytes:
    """As incompressible as a list can be."""
    random = Random(1)
    return "".join(f"docker.io/rancher/x:v1@sha256:{random.getrandbits(256):064x}\r\n" for _ in range(count)).encode()


async def handed(cluster: Harvester) -> list[str]:
    """Return the list as a node reads it from the mounted Secret."""
    plan = await cluster.find(SUC_PLANS, "up-image-cleanup", "cattle-system")
    mounted = sorted(plan["spec"]["secrets"], key=lambda secret: str(secret["path"]))
    found = [await cluster.find(SECRETS, secret["name"], "cattle-system") for secret in mounted]
    packed = b"".join(b64decode(value) for secret in found for value in secret["data"].values())
    return gzip.decompress(packed).decode().splitlines()


@pytest.mark.rule("pipeline: the list given to the nodes may exceed 128 KiB")
async def test_list_of_20000_lines_reaches_the_nodes(cluster: Harvester) -> None:
    """Also after a crash between its two Secrets."""
    old = images(20_000)
    assert len(old) > 1024 * 1024
    ctx = await prepared(cluster, old, b"a/b:1\n")
    await ImageCleanup().run(ctx)
    first, second = await cluster.names(SECRETS, "cattle-system")
    assert await handed(cluster) == sorted(old.decode().split())
    await cluster.client.delete(SUC_PLANS, "up-image-cleanup", namespace="cattle-system")
    await cluster.client.delete(SECRETS, second, namespace="cattle-system")
    assert isinstance(await ImageCleanup().run(ctx), Waiting)
    assert await cluster.names(SECRETS, "cattle-system") == [first, second]
    assert await handed(cluster) == sorted(old.decode().split())


async def test_lists_are_compared_whatever_their_form(cluster: Harvester) -> None:
    """Comments, blank lines, CRLF, duplicates, a port, a digest, a retained image: all in one."""
    digest = "sha256:" + "a" * 64
    lines = [
        "# all images", "", "docker.io/rancher/a:1", "docker.io/rancher/a:1",
        "registry:5000/b:1 # old", f"c/d@{digest}",
        "docker.io/rancher/kept:1", "longhornio/longhorn-engine:1", "longhornio/longhorn-engine:2",
    ]  # fmt: skip
    old = "\r\n".join(lines).encode()
    await ImageCleanup().run(await prepared(cluster, old, b"rancher/kept:1 # still\nregistry:5000/b:2\n"))
    assert await handed(cluster) == [f"c/d@{digest}", "docker.io/rancher/a:1", "registry:5000/b:1"]


async def test_long_node_name_skips_the_phase_with_a_warning(cluster: Harvester) -> None:
    ctx = await prepared(cluster)
    await cluster.put(NODES, {"metadata": {"name": "n" * 64, "labels": {"harvesterhci.io/managed": "true"}}})
    assert await ImageCleanup().run(ctx) == Completed()
    assert [reason for reason, _ in cluster.recorder.recorded] == ["ImageCleanupSkipped"]
    assert await cluster.names(SUC_PLANS) == []


@pytest.mark.rule(
    "pipeline: ImageCleanup fetches the image lists of the previous and the new release",
    "pipeline: ImageCleanup completes immediately when there is nothing to remove",
    "pipeline: lists are in images-lists-archive, the old one by previous version, the new one in current",
    "pipeline: a missing list skips the phase with the Warning event ImageCleanupSkipped",
)
@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        pytest.param(404, b"a/b:2\n", "v1.6.1/image_list_all.txt does not exist", id="no list of the old release"),
        pytest.param(b"a/b:1\n", 404, "current/image_list_all.txt does not exist", id="none of the new one"),
        pytest.param(404, 404, "does not exist", id="neither"),
        pytest.param(b"", b"a/b:2\n", "v1.6.1/image_list_all.txt is empty", id="an empty list of the old one"),
        pytest.param(b"# none\r\n\r\n", b"a/b:2\n", "is empty", id="comments alone"),
        pytest.param(b"a/b:1\n", b"", "is empty", id="an empty one is not a licence to remove everything"),
        pytest.param(b"a/b:1\n", b"<html>\n", "is empty", id="nor is a page"),
        pytest.param(b"a/b:1\n", b"a/b:1\n", "", id="nothing to remove"),
    ],
)
async def test_missing_list_skips_the_phase_with_a_warning(
    cluster: Harvester, old: bytes | int, new: bytes | int, text: str
) -> None:
    assert await ImageCleanup().run(await prepared(cluster, old, new)) == Completed()
    assert await cluster.names(SUC_PLANS) == []
    assert [reason for reason, _ in cluster.recorder.recorded] == ["ImageCleanupSkipped"] * (
        2 if (old, new) == (404, 404) else bool(text)
    )
    assert all(text in message for _, message in cluster.recorder.recorded)


async def test_restarting_repository_is_awaited(cluster: Harvester) -> None:
    await cluster.nodes("n1")
    await serving(cluster, is_ready=False)
    status = {"releaseMetadata": RELEASE, "previousVersion": "v1.6.1", "isoImageID": "up-iso"}
    ctx = cluster.context(await cluster.plan(status=status))
    for _ in range(2):
        waiting = await ImageCleanup().run(ctx)
        assert isinstance(waiting, Waiting)
        assert waiting.message == "Deployment harvester-system/up-repo: 0 of 1 replicas ready"
    assert await cluster.names(DEPLOYMENTS, "harvester-system") == ["up-repo"]
    assert cluster.files.requests == []


RESUME = """kubectl patch job -n harvester-system up-node-upgrade-restore-vm-n0 -p '{"spec":{"suspend":false}}'"""


@pytest.mark.rule("api: accepted: Progressing=True, reason is the phase value, message is what the phase waits for")
@pytest.mark.parametrize(
    ("failed", "text"),
    [
        pytest.param([], None, id="none"),
        pytest.param([0], "n0: restarting VMs, attempt 1 of 3", id="one"),
        pytest.param([1], "n0: restarting VMs, attempt 2 of 3; the last attempt failed", id="retried"),
        pytest.param([0, 0, 1], "n0 and 2 more: restarting VMs, attempt 1 of 3", id="several"),
        pytest.param([-1], f"n0: restarting VMs, {SUSPENDED}. Resume it: {RESUME}", id="suspended"),
    ],
)
async def test_end_waits_for_restore_jobs(cluster: Harvester, failed: list[int], text: str | None) -> None:
    ctx = cluster.context(await cluster.plan(spec={"version": "v1.7.0", "restoreVM": True}))
    for number, count in enumerate(failed):
        job = restore_job(ctx.owner, ctx.job_settings, node=f"n{number}")
        job["spec"]["suspend"] = count < 0
        await cluster.put(JOBS, job, status={"failed": count} if count > 0 else None)
    job_name = "Job harvester-system/up-node-upgrade-restore-vm-"
    assert shown(await ImageCleanup().exit(ctx)) == (
        None if text is None else Waiting(waits=(), message=f"{job_name}{text}")
    )


@pytest.mark.rule("pipeline: an unreachable repository is retried by ImageCleanup")
@pytest.mark.parametrize("which", [OLD, NEW], ids=["for the old list", "for the new list"])
@pytest.mark.parametrize("answer", [500, 503, 403])
async def test_error_of_the_repository_is_retried(cluster: Harvester, answer: int, which: str) -> None:
    ctx = await prepared(cluster)
    good = cluster.files.answers[which]
    cluster.files.answers[which] = answer
    if answer == 403:
        with pytest.raises(BadRepository):
            await ImageCleanup().run(ctx)
    else:
        waiting = await ImageCleanup().run(ctx)
        assert isinstance(waiting, Waiting)
        assert {type(wait) for wait in waiting.waits} == {ServiceWait}
    assert cluster.recorder.recorded == []
    cluster.files.answers[which] = good
    assert isinstance(await ImageCleanup().run(ctx), Waiting)
    assert await handed(cluster) == ["a/b:1"]


@pytest.mark.rule("pipeline: an unreachable repository is retried by ImageCleanup")
async def test_repository_that_does_not_respond_is_awaited(cluster: Harvester) -> None:
    ctx = await prepared(cluster, Transient("connection refused"))
    waiting = await ImageCleanup().run(ctx)
    assert isinstance(waiting, Waiting)
    assert waiting.message == "Service harvester-system/up-repo: waiting for a response"
    assert "connection refused" in waiting.detail
    began = waiting.waits[0].since
    await asyncio.sleep(600)
    waiting = await ImageCleanup().run(ctx)
    assert isinstance(waiting, Waiting)
    assert [(type(wait), wait.since) for wait in waiting.waits] == [(ServiceWait, began)]


@pytest.mark.rule("pipeline: ImageCleanup completes when the Plan is Complete")
async def test_lists_are_not_read_once_the_plan_exists(cluster: Harvester) -> None:
    ctx = await prepared(cluster)
    await ImageCleanup().run(ctx)
    cluster.files.answers = {}
    await cluster.complete_plan("up-image-cleanup", "n1")
    assert await ImageCleanup().run(ctx) == Completed()


@pytest.mark.parametrize("version", ["../../secret", "a/b", "", "..", "v1?x#y"])
async def test_previous_version_is_quoted_in_the_url(cluster: Harvester, version: str) -> None:
    await cluster.nodes("n1")
    await serving(cluster, is_ready=True)
    ctx = cluster.context(await cluster.plan(status={"releaseMetadata": RELEASE, "previousVersion": version}))
    assert await ImageCleanup().run(ctx) == Completed()
    middle = cluster.files.requests[0].partition(ARCHIVE)[2].removesuffix("/image_list_all.txt")
    assert "/" not in middle[1:]
    assert not {"?", "#"} & set(middle)


@pytest.mark.rule("nodes: a managed label that is missing for a moment changes nothing")
async def test_node_without_the_label_is_not_left_out(cluster: Harvester) -> None:
    async def label(value: str | None) -> None:
        await cluster.client.patch(
            NODES, "n2", MergePatch({"metadata": {"labels": {"harvesterhci.io/managed": value}}})
        )

    ctx = await prepared(cluster)
    await cluster.nodes("n2")
    for node in ("n1", "n2"):
        await cluster.machine(node)
    await label(None)
    with pytest.raises(BadCluster, match=r"^Node n2 would be left out: it lacks the label"):
        await ImageCleanup().run(ctx)
    await label("true")
    assert isinstance(await ImageCleanup().run(ctx), Waiting)
    await label(None)
    await cluster.complete_plan("up-image-cleanup", "n1")
    with pytest.raises(BadCluster, match=r"^Node n2 would be left out: it lacks the label"):
        await ImageCleanup().run(ctx)
    await label("true")
    await cluster.complete_plan("up-image-cleanup", "n2")
    assert await ImageCleanup().run(ctx) == Completed()


LOST = "it was upgraded, and the upgrade waits for it, because"


@pytest.mark.rule("pipeline: Succeeded means that every recorded node is Ready and schedulable on the release's OS")
@pytest.mark.parametrize(
    ("change", "message", "done"),
    [
        pytest.param({}, None, 1, id="as upgraded"),
        pytest.param(
            {"unschedulable": True},
            "it is cordoned after its upgrade. Uncordon it: kubectl uncordon n1",
            1,
            id="cordoned",
        ),
        pytest.param(
            {"ready": "False"},
            f"{LOST} it is not Ready; it last reported {RELEASE['os']}. {CONSOLE}",
            0,
            id="not Ready",
        ),
        pytest.param({"os": "Old"}, f"{LOST} it runs Old instead of {RELEASE['os']}. {FALLBACK}", 0, id="fell back"),
        pytest.param(
            {"os": ""}, f"{LOST} it runs an unknown OS instead of {RELEASE['os']}. {FALLBACK}", 0, id="unknown OS"
        ),
        pytest.param(
            {"kubelet": "v1.32.4+rke2r1"},
            f"{LOST} it runs Kubernetes v1.32.4+rke2r1 instead of {RELEASE['kubernetes']}. {AGENT}",
            0,
            id="older Kubernetes",
        ),
    ],
)
async def test_end_waits_for_nodes_that_changed(
    cluster: Harvester, change: Any, message: str | None, done: int
) -> None:
    await cluster.nodes("n1")
    status = {
        "conditions": [{"type": "Ready", "status": change.get("ready", "True")}],
        "nodeInfo": {"osImage": change.get("os", RELEASE["os"]), "kubeletVersion": change.get("kubelet", "")},
    }
    await cluster.finish(NODES, "n1", "", status)
    if change.get("unschedulable"):
        await cluster.client.patch(NODES, "n1", MergePatch({"spec": {"unschedulable": True}}))
    recorded = {"n1": {"state": "ImageCleaned"}, "n2-has-left": {"state": "ImageCleaned"}}
    ctx = cluster.context(await cluster.plan(status={"releaseMetadata": RELEASE, "nodeUpgradeStatuses": recorded}))
    expected = None if message is None else Waiting(waits=(), message=f"n1: {message} ({done} of 1 nodes done)")
    assert shown(await ImageCleanup().exit(ctx)) == expected


async def failing(cluster: Harvester, *, message: str, has_job: bool = True) -> ReconcileContext:
    """Let the clean-up fail on n2, before it begins on n3."""
    ctx = await prepared(cluster)
    await cluster.nodes("n2", "n3")
    for node in ("n1", "n2", "n3"):
        ctx.status.move_node(node, NodeState.IMAGE_CLEANED if node == "n1" else NodeState.POST_DRAINED)
        await cluster.finish(NODES, node, "", {"conditions": READY, "nodeInfo": {"osImage": RELEASE["os"]}})
    await ImageCleanup().run(ctx)
    plan = await cluster.find(SUC_PLANS, "up-image-cleanup", "cattle-system")
    owner = {"apiVersion": "upgrade.cattle.io/v1", "kind": "Plan", "name": objects.name(plan), "controller": True}
    labels = {**objects.labels(plan), "upgrade.cattle.io/node": "n2"}
    metadata = {"name": "apply-x", "namespace": "cattle-system", "labels": labels}
    container = {"name": "upgrade", "image": "x"}
    pod = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    if has_job:
        job = {"metadata": {**metadata, "ownerReferences": [{**owner, "uid": objects.uid(plan)}]}}
        failed = [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "limit reached"}]
        await cluster.put(JOBS, {**job, "spec": {"template": pod}}, status={"conditions": failed})
    if message:
        ended = [{"name": "upgrade", "state": {"terminated": {"exitCode": 1, "message": f"start\n{message}\n"}}}]
        labels = {"batch.kubernetes.io/job-name": "apply-x", "job-name": "apply-x"}
        body = {"metadata": {"name": "apply-x-1", "namespace": "cattle-system", "labels": labels}, "spec": pod["spec"]}
        await cluster.put(PODS, body, status={"containerStatuses": ended})
    words = "Job cattle-system/apply-x failed on Node n2: BackoffLimitExceeded: limit reached"
    status = {"conditions": [{"type": "Complete", "status": "False", "reason": "JobFailed", "message": words}]}
    await cluster.finish(SUC_PLANS, "up-image-cleanup", "cattle-system", status)
    return ctx


READY = [{"type": "Ready", "status": "True"}]
CRICTL = "/var/lib/rancher/rke2/bin/crictl --config /var/lib/rancher/rke2/agent/etc/crictl.yaml"


@pytest.mark.rule("pipeline: ImageCleanup completes when the Plan has failed, with the condition ImagesNotRemoved")
@pytest.mark.parametrize(
    ("message", "has_job", "cause"),
    [
        pytest.param("no space", True, "the clean-up failed on node n2: no space", id="with its last line"),
        pytest.param("", True, "the clean-up failed on node n2: limit reached", id="without a line"),
        pytest.param("", False, "the clean-up failed: BackoffLimitExceeded: limit reached", id="of an expired Job"),
    ],
)
async def test_failed_clean_up_is_a_condition(cluster: Harvester, message: str, cause: str, *, has_job: bool) -> None:
    ctx = await failing(cluster, message=message, has_job=has_job)
    assert await ImageCleanup().run(ctx) == Completed()
    text = (
        f"Nodes n2, n3: images that only v1.6.1 needs were not removed ({cause}). The upgrade is complete, and the "
        "kubelet removes unused images when it needs disk space. To free space before, list the images on the node: "
        f"{CRICTL} images; then remove each that only v1.6.1 needs: {CRICTL} rmi IMAGE"
    )
    found = find_condition(ctx.status["conditions"], "ImagesNotRemoved")
    assert found is not None
    assert (found["status"], found["reason"], found["message"]) == ("True", "CleanupFailed", text)
    assert cluster.recorder.recorded == [("ImagesNotRemoved", text)]
    assert ctx.status.node_message("n2") == ("" if not has_job else cause.rpartition(": ")[2])
