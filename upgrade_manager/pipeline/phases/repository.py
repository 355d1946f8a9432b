"""Existence and readiness of the upgrade repository, which nodes read until the last post-drain Job has ended.

engine.py calls it beside each phase that reads the repository; iso_import.py has the image that the repository mounts,
ending/repository_handover.py keeps the repository for running Jobs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM, WITNESS_LABEL, Component
from upgrade_manager.api.names import component_name, repo_service_name
from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.blockers.wait import DeploymentWait, JobWait, ServiceWait
from upgrade_manager.facts.deployments import refused_pods, show_pods
from upgrade_manager.facts.endpoint_slices import ready_endpoints
from upgrade_manager.facts.removal import removal
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import DEPLOYMENTS, SERVICES
from upgrade_manager.pipeline.blocker_report import first_seen
from upgrade_manager.pipeline.ending import repository_handover
from upgrade_manager.pipeline.outcome import Completed, Waiting
from upgrade_manager.pipeline.phases import iso_import
from upgrade_manager.pipeline.selections import MANAGED_NODES, one_image, repository_deployments, repository_endpoints
from upgrade_manager.resources.repository import pod_selector, repository_deployment, repository_service
from upgrade_manager.runtime.result import RetryError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from upgrade_manager.blockers.wait import RepositoryWait, Wait
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.outcome import PhaseResult
    from upgrade_manager.release.errors import Unreachable

REPLICAS = 2
#: Seconds until a Service that is being deleted is read again, because Services are not watched.
DELETION_RETRY = 1.0
#: Seconds until a repository that does not respond is read again.
_RESPONSE_RETRY = 2.0


async def serve(ctx: ReconcileContext) -> Completed | Waiting:
    """Ensure the Deployment and the Service, then wait for the replicas and for an endpoint."""
    deployment = await _ensure_deployment(ctx)
    if isinstance(deployment, Waiting):
        return deployment
    missing = await _missing_replicas(ctx, deployment)
    if missing is not None:
        return missing
    slices = await _endpoint_slices(ctx)
    if any(map(ready_endpoints, slices)):
        return Completed()
    return await _await_endpoint(ctx, slices)


async def ensure(ctx: ReconcileContext) -> Waiting | None:
    """Recreate the image, the Deployment and the Service if they were deleted, and scale the Deployment up again.

    Return what is left to do, None if nothing is. A refused write is returned as its error, because it must not keep
    the phase from its work, such as finishing a node that is back.
    """
    try:
        return await ensure_image(ctx) or await _ensure_objects(ctx)
    except (KubeError, RetryError) as error:
        # The phase names its own waits, and the reconciler reports the error.
        return Waiting(message=str(error), waits=(), error=error)


async def ensure_image(ctx: ReconcileContext) -> Waiting | None:
    """Create the ISO's image again if another client has deleted it; return None if it exists."""
    name = ctx.status["isoImageID"]
    if not name or (await ctx.watch(one_image(HARVESTER_SYSTEM, name))).get(name, HARVESTER_SYSTEM) is not None:
        return None
    return await iso_import.create_again(ctx)


async def _ensure_objects(ctx: ReconcileContext) -> Waiting | None:
    deployment = await _ensure_deployment(ctx)
    if isinstance(deployment, Waiting):
        return deployment
    removed = None if await _endpoint_slices(ctx) else await _ensure_service(ctx)
    return None if removed is None else _being_removed(ctx, removed)


def _being_removed(ctx: ReconcileContext, service: Object) -> Waiting:
    """Return Waiting for the removal of a Service that another client deletes."""
    message = f"Service {objects.qualified_name(service)} is being deleted, and is created again afterwards"
    detail = f"the upgrade repository needs it again, and {removal(service)}"
    waits = (repository_handover.removal_wait(ctx, SERVICES, service, detail=detail),)
    return Waiting(message=message, after=DELETION_RETRY, waits=waits)


def beside(result: PhaseResult, repository: Waiting | None) -> PhaseResult:
    """Return the phase's result with what is left to do about the repository."""
    if repository is None or not isinstance(result, Waiting):
        return result
    times = [time for time in (result.after, repository.after) if time is not None]
    waits = (*result.waits, *repository.waits)
    return replace(result, after=min(times, default=None), waits=waits, error=result.error or repository.error)


async def unserved(ctx: ReconcileContext) -> Waiting | None:
    """Return Waiting until the repository is ready, then None."""
    if any(map(ready_endpoints, await _endpoint_slices(ctx))):
        return None
    result = await serve(ctx)
    return result if isinstance(result, Waiting) else None


async def waits(ctx: ReconcileContext, others: Iterable[Wait]) -> tuple[Wait, ...]:
    """Return the wait for a ready endpoint if Jobs read the repository and the repository has no ready endpoint."""
    is_read = any(isinstance(wait, JobWait) for wait in others)
    if not is_read or any(map(ready_endpoints, await _endpoint_slices(ctx))):
        return ()
    return _wait(ctx, ServiceWait, repo_service_name(ctx.owner.name), None, "no endpoint is ready")


def unreachable(ctx: ReconcileContext, error: Unreachable, *, is_error: bool = False) -> Waiting:
    """Return Waiting for a repository that counts as ready and does not respond.

    `is_error` is True for a phase that fails without a response: the reconciler reports and retries the error.
    """
    message = f"Service {HARVESTER_SYSTEM}/{repo_service_name(ctx.owner.name)}: waiting for a response"
    waits = _wait(ctx, ServiceWait, repo_service_name(ctx.owner.name), None, str(error))
    waiting = Waiting(message=message, detail=str(error), after=_RESPONSE_RETRY, waits=waits)
    if not is_error:
        return waiting
    return replace(waiting, error=RetryError(f"{error}. {show_pods(HARVESTER_SYSTEM, pod_selector(ctx.owner))}"))


async def _ensure_deployment(ctx: ReconcileContext) -> Object | Waiting:
    """Return the Deployment; Waiting if the Deployment was just created or scaled, or cannot be created yet."""
    deployments, _ = await ctx.watch_all(repository_deployments(ctx.owner), repository_endpoints(ctx.owner))
    name, replicas = component_name(ctx.owner.name, Component.REPO), await _replicas(ctx)
    deployment = deployments.get(name, HARVESTER_SYSTEM)
    if deployment is None or not ctx.owner.owns(deployment):
        return await _create(ctx, replicas=replicas) or _created(ctx, name, replicas)
    if objects.spec(deployment).get("replicas", 1) >= replicas:
        return deployment
    if not any(write.resource == DEPLOYMENTS for write in ctx.writes):
        patch = MergePatch({"spec": {"replicas": replicas, **_template(ctx, deployment)}})
        patch = patch.at(objects.resource_version(deployment))
        await ctx.patch(DEPLOYMENTS, name, patch, namespace=HARVESTER_SYSTEM)
    return _created(ctx, name, replicas)


def _template(ctx: ReconcileContext, deployment: Object) -> Object:
    """Return the change of the containers if a new attempt has another toolkit image; empty otherwise."""
    wanted = repository_deployment(ctx.owner, image=ctx.toolkit, claim="", replicas=0)
    now, new = (objects.items(one, "spec", "template", "spec", "containers") for one in (deployment, wanted))
    is_equal = [one.get("image") for one in now] == [one["image"] for one in new]
    return {} if is_equal else {"template": {"spec": {"containers": new}}}


def _created(ctx: ReconcileContext, name: str, replicas: int) -> Waiting:
    """Report a Deployment that was just created or scaled, which the cache does not show yet."""
    waits = _wait(ctx, DeploymentWait, name, None, f"0 of {replicas} replicas are available")
    return _not_ready(f"{HARVESTER_SYSTEM}/{name}", available=0, wanted=replicas, waits=waits)


async def _endpoint_slices(ctx: ReconcileContext) -> list[Object]:
    """Return the EndpointSlices of the Service; they are deleted with it, or orphaned."""
    slices = (await ctx.watch(repository_endpoints(ctx.owner))).list()
    return [slice_ for slice_ in slices if objects.owner_uid(slice_)]


async def _ensure_service(ctx: ReconcileContext) -> Object | None:
    """Create the Service if it does not exist; return it if it is being deleted."""
    found = await ctx.client.find(
        SERVICES, repo_service_name(ctx.owner.name), namespace=HARVESTER_SYSTEM, metadata_only=True
    )
    if found is None:
        await ctx.ensure(SERVICES, repository_service(ctx.owner))
        return None
    return found if objects.is_deleting(found) else None


async def _create(ctx: ReconcileContext, *, replicas: int) -> Waiting | None:
    """Create the Service before the Deployment, so that an existing Deployment implies an existing Service."""
    waiting = await repository_handover.ensure(ctx, SERVICES, repository_service(ctx.owner))
    if waiting is not None:
        return waiting
    deployment = repository_deployment(ctx.owner, image=ctx.toolkit, claim=ctx.status["isoImageID"], replicas=replicas)
    return await repository_handover.ensure(ctx, DEPLOYMENTS, deployment)


async def _replicas(ctx: ReconcileContext) -> int:
    """Return 2, to survive a node's reboot, or 1 if only one node is not a witness, which runs no Pods."""
    nodes = (await ctx.watch(MANAGED_NODES)).derive(_may_run_pods)
    return min(REPLICAS, max(1, sum(nodes)))


def _may_run_pods(node: Object) -> bool:
    return WITNESS_LABEL not in objects.labels(node)


async def _missing_replicas(ctx: ReconcileContext, deployment: Object) -> Waiting | None:
    wanted = objects.spec(deployment).get("replicas", 1)
    available = objects.status(deployment).get("availableReplicas") or 0
    if available >= wanted:
        return None
    named = f"{objects.namespace(deployment)}/{objects.name(deployment)}"
    detail = refused_pods(deployment)
    known = detail or f"{available} of {wanted} replicas are available"
    wait = _wait(ctx, DeploymentWait, objects.name(deployment), _unavailable_since(deployment), known)
    return replace(_not_ready(named, available=available, wanted=wanted, waits=wait), detail=detail)


def _unavailable_since(deployment: Object) -> object:
    """Return the time at which the Deployment became unavailable; None for an available Deployment."""
    available = objects.condition(deployment, "Available")
    if not available:
        return objects.metadata(deployment).get("creationTimestamp")
    return available.get("lastTransitionTime") if available.get("status") == "False" else None


async def _await_endpoint(ctx: ReconcileContext, slices: Sequence[Object]) -> Waiting:
    """Wait for a ready endpoint, and recreate the Service if it was deleted."""
    service = repo_service_name(ctx.owner.name)
    removed = await _ensure_service(ctx)
    if removed is not None:
        return _being_removed(ctx, removed)
    known = sum(len(slice_.get("endpoints") or []) for slice_ in slices)
    detail = f"0 of {known} endpoints ready" if slices else "its EndpointSlice does not exist"
    return Waiting(
        message=f"Service {HARVESTER_SYSTEM}/{service}: waiting for a ready endpoint",
        detail=detail,
        waits=_wait(ctx, ServiceWait, service, None, detail),
    )


def _wait(
    ctx: ReconcileContext, kind: type[RepositoryWait], name: str, since: object, detail: str
) -> tuple[RepositoryWait, ...]:
    """Return the wait since that time, or since this process first saw the outage."""
    began = parse_time(since) or first_seen(ctx, kind, name)
    deployment, pods = component_name(ctx.owner.name, Component.REPO), pod_selector(ctx.owner)
    place = HARVESTER_SYSTEM
    return (kind(namespace=place, name=name, since=began, deployment=deployment, pods=pods, detail=detail),)


def _not_ready(named: str, *, available: int, wanted: int, waits: tuple[Wait, ...]) -> Waiting:
    return Waiting(message=f"Deployment {named}: {available} of {wanted} replicas ready", waits=waits)
