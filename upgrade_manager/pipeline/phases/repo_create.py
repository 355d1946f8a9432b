from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM, WITNESS_LABEL, Component
from upgrade_manager.api.names import component_name, repo_service_name
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import DEPLOYMENTS, SERVICES
from upgrade_manager.pipeline.diagnostics import DIAGNOSTICS_INTERVAL, pod_not_ready_reason
from upgrade_manager.pipeline.phases.base import Completed, Phase, Waiting
from upgrade_manager.pipeline.selections import MANAGED_NODES, repository_deployments, repository_endpoints
from upgrade_manager.resources.repository import repository_deployment, repository_service

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.phases.base import PhaseResult

REPLICAS = 2


class RepoCreate(Phase):
    """Serves the ISO's content inside the cluster: Pods that mount it, and a Service before them."""

    name = PhaseName.REPO_CREATE

    async def run(self, ctx: ReconcileContext) -> PhaseResult:
        """Create both, then wait for the Pods and for the Service to lead to one."""
        nodes = (await ctx.watch(MANAGED_NODES)).list()
        deployments, endpoints = await ctx.watch_all(repository_deployments(ctx.owner), repository_endpoints(ctx.owner))
        name = component_name(ctx.owner.name, Component.REPO)
        deployment = deployments.get(name, HARVESTER_SYSTEM)
        if deployment is None or not ctx.owner.owns(deployment):
            replicas = _replicas(nodes)
            await _create(ctx, replicas=replicas)
            return _not_ready(f"{HARVESTER_SYSTEM}/{name}", available=0, wanted=replicas)
        missing = await _missing_replicas(ctx, deployment)
        if missing is not None:
            return missing
        if any(_has_ready(slice_) for slice_ in endpoints.list()):
            return Completed()
        return await _await_endpoint(ctx, endpoints.list())


async def unserved(ctx: ReconcileContext) -> Waiting | None:
    """What is to be waited for before a later phase reads from the repository; None while it serves.

    One that somebody has taken away is made again.
    """
    endpoints = await ctx.watch(repository_endpoints(ctx.owner))
    if any(_has_ready(slice_) for slice_ in endpoints.list()):
        return None
    outcome = await RepoCreate().run(ctx)
    return outcome if isinstance(outcome, Waiting) else None


async def _create(ctx: ReconcileContext, *, replicas: int) -> None:
    """The Service first: the Deployment's presence tells that both are there."""
    await ctx.ensure(SERVICES, repository_service(ctx.owner))
    deployment = repository_deployment(ctx.owner, image=ctx.toolkit, claim=ctx.status["isoImageID"], replicas=replicas)
    await ctx.ensure(DEPLOYMENTS, deployment)


def _replicas(nodes: Iterable[Object]) -> int:
    """Two, so that one reboot does not take the repository away; a witness runs no ordinary Pods."""
    able = [node for node in nodes if WITNESS_LABEL not in objects.labels(node)]
    return min(REPLICAS, max(1, len(able)))


async def _missing_replicas(ctx: ReconcileContext, deployment: Object) -> Waiting | None:
    wanted = objects.spec(deployment).get("replicas", 1)
    available = objects.status(deployment).get("availableReplicas") or 0
    if available >= wanted:
        return None
    named = f"{objects.namespace(deployment)}/{objects.name(deployment)}"
    waiting = _not_ready(named, available=available, wanted=wanted)
    refused = objects.condition(deployment, "ReplicaFailure") or {}
    if refused.get("status") == "True":
        return replace(waiting, detail=f"no Pod may be created ({refused.get('message') or refused.get('reason')})")
    lacking = ctx.status.seconds_since(_lacking_since(deployment))
    if lacking < DIAGNOSTICS_INTERVAL:
        return replace(waiting, after=DIAGNOSTICS_INTERVAL - lacking)
    load = partial(
        pod_not_ready_reason, ctx.client, namespace=HARVESTER_SYSTEM, label_selector=ctx.owner.selector(Component.REPO)
    )
    # The Pods are not watched: nearly always the Deployment tells all that there is to know.
    return replace(waiting, detail=await ctx.informers.diagnostics.get("replicas", load), after=DIAGNOSTICS_INTERVAL)


def _lacking_since(deployment: Object) -> object:
    """When there were enough replicas for the last time: the Deployment's beginning, or nothing for right now."""
    available = objects.condition(deployment, "Available")
    if available is None:
        return objects.metadata(deployment).get("creationTimestamp")
    return available.get("lastTransitionTime") if available.get("status") == "False" else None


async def _await_endpoint(ctx: ReconcileContext, slices: Sequence[Object]) -> Waiting:
    """The Pods are ready: their endpoint follows at once, unless somebody has taken the Service away."""
    service = repo_service_name(ctx.owner.name)
    if await ctx.find(SERVICES, service, namespace=HARVESTER_SYSTEM) is None:
        await ctx.ensure(SERVICES, repository_service(ctx.owner))
    known = sum(len(slice_.get("endpoints") or []) for slice_ in slices)
    state = f"none of {known} in its EndpointSlices" if slices else "it has no EndpointSlice yet"
    return Waiting(message=f"waiting for Service {HARVESTER_SYSTEM}/{service}: no endpoint is ready", detail=state)


def _not_ready(named: str, *, available: int, wanted: int) -> Waiting:
    return Waiting(message=f"waiting for Deployment {named}: {available} of {wanted} replicas ready")


def _has_ready(slice_: Object) -> bool:
    """An endpoint without conditions counts as ready, as the API defines it."""
    return any((e.get("conditions") or {}).get("ready", True) is not False for e in slice_.get("endpoints") or [])
