from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.managers.phase_results import shown
from upgrade_manager.api.remedy import remedy_text
from upgrade_manager.blockers.known_wait import RemovedServiceWait
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import DEPLOYMENTS, ENDPOINT_SLICES, SERVICES
from upgrade_manager.pipeline.errors import ForeignObject, RetryError
from upgrade_manager.pipeline.outcome import Completed, Waiting
from upgrade_manager.pipeline.phases.repo_create import RepoCreate
from upgrade_manager.pipeline.phases.repository import beside, ensure
from upgrade_manager.resources.owner import Owner
from upgrade_manager.resources.repository import repository_deployment
from upgrade_manager.resources.toolkit import ToolkitImage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.support.cluster.harvester import Harvester
    from upgrade_manager.pipeline.context import ReconcileContext

STATUS = {"isoImageID": "up-iso"}
PLACE = "harvester-system"
#: The owner of EndpointSlices.
OF_SERVICE = {"apiVersion": "v1", "kind": "Service", "name": "up-repo", "uid": "s", "controller": True}


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
    assert shown(outcome) == Waiting(
        waits=(), message=f"Deployment harvester-system/up-repo: 0 of {replicas} replicas ready"
    )
    deployment = await cluster.find(DEPLOYMENTS, "up-repo", PLACE)
    assert deployment["spec"]["replicas"] == replicas
    (volume,) = deployment["spec"]["template"]["spec"]["volumes"]
    assert volume["persistentVolumeClaim"]["claimName"] == "up-iso"
    assert await cluster.names(SERVICES, PLACE) == ["up-repo"]


@pytest.fixture
async def created(cluster: Harvester) -> ReconcileContext:
    """Return the context of a plan with Service and Deployment, of 2 replicas."""
    await cluster.nodes("n1", "n2")
    ctx = cluster.context(await cluster.plan(status=STATUS))
    await RepoCreate().run(ctx)
    return ctx


async def set_status(cluster: Harvester, *, available: int = 2, **status: Any) -> None:
    counts = {"availableReplicas": available, "readyReplicas": available, "replicas": 2} if available else {}
    await cluster.finish(DEPLOYMENTS, "up-repo", PLACE, counts | status)


async def endpoints(cluster: Harvester, *ready: bool | None, service: str = "up-repo") -> None:
    labels = {"kubernetes.io/service-name": service}
    conditions = [{} if state is None else {"conditions": {"ready": state}} for state in ready]
    manifest = {
        "metadata": {"name": "up-repo-x", "namespace": PLACE, "labels": labels, "ownerReferences": [OF_SERVICE]},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"], **one} for one in conditions],
    }
    await cluster.put(ENDPOINT_SLICES, manifest)


@pytest.mark.rule(
    "api: accepted: Progressing=True, reason is the phase value, message is what the phase waits for",
    "api: waiting is not an error",
    "pipeline: RepoCreate completes when the requested replicas are available",
    "pipeline: RepoCreate waits for a ready endpoint in an EndpointSlice of the Service",
)
@pytest.mark.parametrize(
    ("ready", "service", "detail"),
    [
        pytest.param(None, "up-repo", "its EndpointSlice does not exist", id="no EndpointSlice"),
        pytest.param([], "up-repo", "0 of 0 endpoints ready", id="no endpoint"),
        pytest.param([False, False], "up-repo", "0 of 2 endpoints ready", id="no ready endpoint"),
        pytest.param([True], "another", "its EndpointSlice does not exist", id="another Service's endpoint"),
        pytest.param([False, True], "up-repo", None, id="a ready endpoint"),
        pytest.param([None], "up-repo", None, id="an endpoint without the condition counts as ready"),
    ],
)
async def test_phase_completes_with_a_ready_endpoint(
    cluster: Harvester, created: ReconcileContext, ready: list[bool | None] | None, service: str, detail: str | None
) -> None:
    await set_status(cluster)
    if ready is not None:
        await endpoints(cluster, *ready, service=service)
    message = f"Service {PLACE}/up-repo: waiting for a ready endpoint"
    expected = Completed() if detail is None else Waiting(waits=(), message=message, detail=detail)
    assert shown(await RepoCreate().run(created)) == expected


LONG_AGO = "2025-12-31T23:00:00Z"


def lacking(since: str, status: str = "False") -> dict[str, Any]:
    return {"type": "Available", "status": status, "lastTransitionTime": since, "lastUpdateTime": since}


def refused(**more: str) -> dict[str, Any]:
    return {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", **more}


@pytest.mark.rule(
    "api: accepted: Progressing=True, reason is the phase value, message is what the phase waits for",
    "pipeline: RepoCreate completes when the requested replicas are available",
)
@pytest.mark.parametrize(
    ("available", "conditions", "detail"),
    [
        pytest.param(0, [], "", id="just created"),
        pytest.param(1, [lacking("2026-01-01T00:00:00Z")], "", id="just missing"),
        pytest.param(1, [lacking(LONG_AGO, "True")], "", id="still Available"),
        pytest.param(0, [lacking(LONG_AGO)], "", id="for a minute"),
        pytest.param(0, [refused(message="quota")], "its Pods cannot be created: quota", id="no Pods"),
        pytest.param(0, [refused()], "its Pods cannot be created: FailedCreate", id="without a message"),
    ],
)
async def test_deployment_is_reported_with_its_state(
    cluster: Harvester,
    created: ReconcileContext,
    available: int,
    conditions: list[dict[str, Any]],
    detail: str,
) -> None:
    await set_status(cluster, available=available, conditions=conditions)
    found = await RepoCreate().run(created)
    assert isinstance(found, Waiting)
    assert (found.message, found.detail) == (f"Deployment {PLACE}/up-repo: {available} of 2 replicas ready", detail)
    [wait] = found.waits
    assert wait.detail == (detail or f"{available} of 2 replicas are available")


async def test_crash_between_service_and_deployment(cluster: Harvester, created: ReconcileContext) -> None:
    await cluster.client.delete(DEPLOYMENTS, "up-repo", namespace=PLACE)
    await RepoCreate().run(created)
    assert await cluster.names(DEPLOYMENTS, PLACE) == await cluster.names(SERVICES, PLACE) == ["up-repo"]


@pytest.mark.parametrize("labelled", [True, False])
async def test_foreign_deployment_is_not_adopted(cluster: Harvester, *, labelled: bool) -> None:
    await cluster.nodes("n1")
    ctx = cluster.context(await cluster.plan(status=STATUS))
    image = ToolkitImage(repository="r", tag="t")
    foreign: dict[str, Any] = repository_deployment(Owner(name="up", uid="old"), image=image, claim="c", replicas=1)
    if not labelled:
        foreign["metadata"] |= {"labels": {}, "ownerReferences": [Owner(name="up", uid="old").reference()]}
    await cluster.put(DEPLOYMENTS, foreign)
    with pytest.raises(ForeignObject, match="belongs to UpgradePlan up"):
        await RepoCreate().run(ctx)


@pytest.mark.rule("blockers: objects of a plan that has ended are named if they are not removed")
async def test_service_that_is_not_removed_is_named(cluster: Harvester, created: ReconcileContext) -> None:
    await set_status(cluster)
    held = MergePatch({"metadata": {"finalizers": ["example.com/held"]}})
    await cluster.client.patch(SERVICES, "up-repo", held, namespace=PLACE)
    await cluster.client.delete(SERVICES, "up-repo", namespace=PLACE)
    for result in (await ensure(created), await RepoCreate().run(created)):
        assert isinstance(result, Waiting)
        (wait,) = result.waits
        assert isinstance(wait, RemovedServiceWait)
        assert wait.detail.endswith("it is being deleted, and its finalizer example.com/held holds it")
        assert "Find out why the controller of example.com/held" in remedy_text(wait.remedies)


REFUSED, OTHER = RetryError("refused"), RetryError("other")


@pytest.mark.parametrize(
    ("phase", "repository", "error"),
    [
        pytest.param(REFUSED, None, REFUSED, id="the phase's error"),
        pytest.param(None, OTHER, OTHER, id="the repository's error"),
        pytest.param(REFUSED, OTHER, REFUSED, id="both"),
    ],
)
def test_error_of_the_phase_is_kept(phase: RetryError | None, repository: RetryError | None, error: RetryError) -> None:
    result = beside(Waiting(message="m", waits=(), error=phase), Waiting(message="r", waits=(), error=repository))
    assert isinstance(result, Waiting)
    assert result.error is error


async def stored(cluster: Harvester) -> tuple[Any, list[str]]:
    deployments = (await cluster.client.list(DEPLOYMENTS, namespace=PLACE)).items
    return [objects.spec(one)["replicas"] for one in deployments], await cluster.names(SERVICES, PLACE)


@pytest.mark.rule("pipeline: the repository is recreated and scaled back up to ImageCleanup")
@pytest.mark.parametrize("harm", ["Deployment deleted", "scaled down", "Service deleted"])
@pytest.mark.parametrize("restore", [ensure, RepoCreate().run], ids=["later", "by its phase"])
async def test_harmed_repository_is_restored(
    cluster: Harvester, created: ReconcileContext, harm: str, restore: Callable[[ReconcileContext], Awaitable[Any]]
) -> None:
    await set_status(cluster)
    whole = await stored(cluster)
    if harm == "scaled down":
        await cluster.client.patch(DEPLOYMENTS, "up-repo", MergePatch({"spec": {"replicas": 0}}), namespace=PLACE)
    else:
        await cluster.client.delete(
            DEPLOYMENTS if harm == "Deployment deleted" else SERVICES, "up-repo", namespace=PLACE
        )
    assert await stored(cluster) != whole
    await asyncio.sleep(1)
    await restore(cluster.context(created.raw))
    assert await stored(cluster) == whole
