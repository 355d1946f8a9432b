from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from upgrade_manager.kube.resources import DEPLOYMENTS, ENDPOINT_SLICES, PODS, SERVICES
from upgrade_manager.pipeline.errors import ForeignObject
from upgrade_manager.pipeline.phases.base import Completed, Waiting
from upgrade_manager.pipeline.phases.repo_create import RepoCreate
from upgrade_manager.resources.owner import Owner
from upgrade_manager.resources.repository import repository_deployment
from upgrade_manager.resources.toolkit import ToolkitImage

if TYPE_CHECKING:
    from tests.support.harvester import Harvester

STATUS = {"isoImageID": "up-iso"}
PLACE = "harvester-system"


@pytest.mark.rule(
    "pipeline: RepoCreate creates a Deployment of 2 replicas",
    "pipeline: RepoCreate creates 1 replica when only one node is not a witness",
    "pipeline: the Deployment mounts the ISO and serves it over HTTP",
    "pipeline: RepoCreate creates a Service",
    "workloads: the volume is the PVC named as the image",
)
@pytest.mark.parametrize(
    ("ordinary", "witnesses", "replicas"),
    [
        pytest.param(1, 0, 1, id="one node"),
        pytest.param(3, 0, 2, id="three nodes"),
        pytest.param(2, 1, 2, id="two nodes and a witness"),
        pytest.param(1, 1, 1, id="one node and a witness"),
        pytest.param(0, 1, 1, id="a witness alone"),
    ],
)
async def test_two_replicas_if_two_nodes_run_pods(
    cluster: Harvester, ordinary: int, witnesses: int, replicas: int
) -> None:
    await cluster.nodes(*(f"n{number}" for number in range(ordinary)))
    witness = {"node-role.harvesterhci.io/witness": "true"}
    await cluster.nodes(*(f"w{number}" for number in range(witnesses)), **witness)
    ctx = cluster.context(await cluster.plan(status=STATUS))
    outcome = await RepoCreate().run(ctx)
    assert outcome == Waiting(message=f"Deployment harvester-system/up-repo: 0 of {replicas} replicas ready")
    deployment = await cluster.find(DEPLOYMENTS, "up-repo", PLACE)
    assert deployment["spec"]["replicas"] == replicas
    (volume,) = deployment["spec"]["template"]["spec"]["volumes"]
    assert volume["persistentVolumeClaim"]["claimName"] == "up-iso"
    assert await cluster.names(SERVICES, PLACE) == ["up-repo"]


async def endpoints(cluster: Harvester, *ready: bool | None, service: str = "up-repo") -> None:
    manifest = {
        "metadata": {"name": "up-repo-x", "namespace": PLACE, "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "endpoints": [
            {"addresses": ["10.0.0.1"], **({} if state is None else {"conditions": {"ready": state}})}
            for state in ready
        ],
    }
    await cluster.put(ENDPOINT_SLICES, manifest)


@pytest.mark.rule(
    "api: waiting is not an error",
    "pipeline: RepoCreate completes when the requested replicas are available",
    "pipeline: RepoCreate waits for a ready endpoint in an EndpointSlice of the Service",
)
@pytest.mark.parametrize(
    ("available", "ready", "outcome"),
    [
        pytest.param(1, [True], "1 of 2 replicas ready", id="a replica is missing"),
        pytest.param(2, None, "waiting for a ready endpoint", id="no EndpointSlice"),
        pytest.param(2, [], "waiting for a ready endpoint", id="an empty one"),
        pytest.param(2, [False, False], "waiting for a ready endpoint", id="none that is ready"),
        pytest.param(2, [False, True], "", id="one that is ready"),
        pytest.param(2, [None], "", id="one that does not say counts as ready"),
    ],
)
async def test_phase_completes_with_replicas_and_a_ready_endpoint(
    cluster: Harvester, available: int, ready: list[bool | None] | None, outcome: str
) -> None:
    await cluster.nodes("n1", "n2")
    ctx = cluster.context(await cluster.plan(status=STATUS))
    await RepoCreate().run(ctx)
    status = {"availableReplicas": available, "readyReplicas": available, "replicas": 2}
    await cluster.finish(DEPLOYMENTS, "up-repo", PLACE, status)
    if ready is not None:
        await endpoints(cluster, *ready)
    found = await RepoCreate().run(ctx)
    assert isinstance(found, Waiting if outcome else Completed)
    if isinstance(found, Waiting):
        assert outcome in found.message


LONG_AGO = "2025-12-31T23:00:00Z"
PENDING = {
    "phase": "Pending",
    "containerStatuses": [{"name": "repo", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no tag"}}}],
}


def lacking(since: str, status: str = "False") -> dict[str, Any]:
    return {"type": "Available", "status": status, "lastTransitionTime": since, "lastUpdateTime": since}


def refused(**more: str) -> dict[str, Any]:
    return {"type": "ReplicaFailure", "status": "True", **more}


@pytest.mark.rule("api: accepted: Progressing=True, reason is the phase value, message is what the phase waits for")
@pytest.mark.parametrize(
    ("available", "conditions", "pods", "message", "detail"),
    [
        pytest.param(0, [], [PENDING], "0 of 2 replicas ready", "", id="just created"),
        pytest.param(1, [lacking("2026-01-01T00:00:00Z")], [PENDING], "1 of 2 replicas ready", "", id="just missing"),
        pytest.param(1, [lacking(LONG_AGO, "True")], [PENDING], "1 of 2 replicas ready", "", id="still Available"),
        pytest.param(
            0,
            [lacking(LONG_AGO)],
            [PENDING],
            "0 of 2 replicas ready",
            "Pod up-repo-0 is Pending (ImagePullBackOff: no tag)",
            id="a Pod that does not start for a minute",
        ),
        pytest.param(0, [lacking(LONG_AGO)], [], "0 of 2 replicas ready", "", id="for a minute, without a reason"),
        pytest.param(
            0,
            [refused(reason="FailedCreate", message="exceeded quota")],
            [],
            "0 of 2 replicas ready",
            "Pods are refused (exceeded quota)",
            id="Pods that may not be created",
        ),
        pytest.param(
            0,
            [refused(reason="FailedCreate")],
            [],
            "0 of 2 replicas ready",
            "Pods are refused (FailedCreate)",
            id="without a message",
        ),
    ],
)
async def test_deployment_is_reported_with_its_state(
    cluster: Harvester,
    available: int,
    conditions: list[dict[str, Any]],
    pods: list[dict[str, Any]],
    message: str,
    detail: str,
) -> None:
    await cluster.nodes("n1", "n2")
    ctx = cluster.context(await cluster.plan(status=STATUS))
    await RepoCreate().run(ctx)
    count = {"availableReplicas": available, "readyReplicas": available, "replicas": 2} if available else {}
    await cluster.finish(DEPLOYMENTS, "up-repo", PLACE, {"conditions": conditions, **count})
    for number, status in enumerate(pods):
        labels = (await cluster.find(DEPLOYMENTS, "up-repo", PLACE))["metadata"]["labels"]
        metadata = {"name": f"up-repo-{number}", "namespace": PLACE, "labels": labels}
        await cluster.put(
            PODS, {"metadata": metadata, "spec": {"containers": [{"name": "repo", "image": "x"}]}}, status=status
        )
    found = await RepoCreate().run(ctx)
    assert isinstance(found, Waiting)
    assert found.message == f"Deployment {PLACE}/up-repo: {message}"
    assert found.detail == detail


@pytest.mark.rule("api: accepted: Progressing=True, reason is the phase value, message is what the phase waits for")
@pytest.mark.parametrize(
    ("ready", "detail"),
    [
        pytest.param(None, "it has no EndpointSlice yet", id="no EndpointSlice"),
        pytest.param([], "its EndpointSlices have 0", id="an empty one"),
        pytest.param([False, False], "its EndpointSlices have 2", id="none that is ready"),
    ],
)
async def test_service_is_reported_with_its_endpoints(
    cluster: Harvester, ready: list[bool | None] | None, detail: str
) -> None:
    await cluster.nodes("n1")
    ctx = cluster.context(await cluster.plan(status=STATUS))
    await RepoCreate().run(ctx)
    await cluster.finish(DEPLOYMENTS, "up-repo", PLACE, {"availableReplicas": 1, "readyReplicas": 1, "replicas": 1})
    if ready is not None:
        await endpoints(cluster, *ready)
    found = await RepoCreate().run(ctx)
    assert found == Waiting(message=f"Service {PLACE}/up-repo: waiting for a ready endpoint", detail=detail)


@pytest.mark.rule("pipeline: RepoCreate waits for a ready endpoint in an EndpointSlice of the Service")
async def test_endpoints_of_another_service_do_not_count(cluster: Harvester) -> None:
    await cluster.nodes("n1")
    ctx = cluster.context(await cluster.plan(status=STATUS))
    await RepoCreate().run(ctx)
    await cluster.finish(DEPLOYMENTS, "up-repo", PLACE, {"availableReplicas": 1, "readyReplicas": 1, "replicas": 1})
    await endpoints(cluster, True, service="another")  # noqa: FBT003  # ready
    assert isinstance(await RepoCreate().run(ctx), Waiting)


async def test_crash_between_service_and_deployment(cluster: Harvester) -> None:
    await cluster.nodes("n1")
    ctx = cluster.context(await cluster.plan(status=STATUS))
    await RepoCreate().run(ctx)
    await cluster.client.delete(DEPLOYMENTS, "up-repo", namespace=PLACE)
    await RepoCreate().run(ctx)
    assert await cluster.names(DEPLOYMENTS, PLACE) == await cluster.names(SERVICES, PLACE) == ["up-repo"]


@pytest.mark.parametrize("labelled", [True, False])
async def test_foreign_deployment_is_not_adopted(cluster: Harvester, labelled: bool) -> None:  # noqa: FBT001  # a table
    await cluster.nodes("n1")
    ctx = cluster.context(await cluster.plan(status=STATUS))
    image = ToolkitImage(repository="r", tag="t")
    foreign: dict[str, Any] = repository_deployment(Owner(name="up", uid="old"), image=image, claim="c", replicas=1)
    if not labelled:
        foreign["metadata"]["labels"] = {}
    await cluster.put(DEPLOYMENTS, foreign)
    with pytest.raises(ForeignObject, match="belongs to UpgradePlan up"):
        await RepoCreate().run(ctx)
