"""engine.py runs it first; preflight/check.py has the checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM, LABEL_SERVICE_NAME, SETTING_SERVER_VERSION
from upgrade_manager.api.names import image_problem, is_object_name
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.blockers.known_wait import CheckedNodeWait, CheckedServiceWait
from upgrade_manager.facts import node_obstacles, versions
from upgrade_manager.facts.machine_plan import held_nodes
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import SETTINGS, VERSIONS
from upgrade_manager.pipeline.errors import MissingObject
from upgrade_manager.pipeline.node_upgrade.managed_nodes import (
    check_managed,
    single_node,
    unknown_pause_nodes,
    unmanaged,
)
from upgrade_manager.pipeline.outcome import Completed, Failed, Phase, Waiting
from upgrade_manager.pipeline.phases import toolkit_image
from upgrade_manager.pipeline.phases.eligibility import check_unfinished, check_upgrade_path
from upgrade_manager.pipeline.plan_objects import find_cluster
from upgrade_manager.pipeline.selections import LOCAL_MACHINES, MACHINE_PLANS, MANAGED_NODES
from upgrade_manager.pipeline.settings import left_entries
from upgrade_manager.preflight.check import NAMESPACE, SERVICE, Pending, Rejected
from upgrade_manager.release.unfinished import UnfinishedUpgrade, version_before

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from upgrade_manager.blockers.wait import Wait
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.outcome import PhaseResult


class Initialize(Phase):
    """Records the Version, the running version and the kind of cluster, then runs the pre-flight checks."""

    name = PhaseName.INITIALIZE
    activity = "Checking the nodes"

    def initial_message(self, ctx: ReconcileContext) -> str:
        """Name the first object that is read."""
        by_image, version = ctx.plan.spec.image, versions.named(ctx.plan.spec.version)
        first = f"Setting {SETTING_SERVER_VERSION}" if by_image else version
        return f"Reading {first} and checking the nodes"

    async def enter(self, ctx: ReconcileContext) -> Failed | None:
        """Record the toolkit image with the acceptance of the plan; `run` reports why a plan gets no toolkit image."""
        toolkit_image.record(ctx)
        return None

    async def resume(self, ctx: ReconcileContext) -> Failed | None:
        """Read the Version again: nothing was created from what the plan has recorded of it."""
        ctx.status["version"] = None
        return await self.enter(ctx)

    async def run(self, ctx: ReconcileContext) -> PhaseResult:
        """Read the Version, unless recorded, and the other objects, then run the checks until they have finished."""
        running, cluster = await _running_version(ctx), await find_cluster(ctx.client, metadata_only=True)
        await left_entries.take_methods(ctx, cluster or {})
        unfinished = UnfinishedUpgrade.of(cluster)
        managed = await ctx.watch(MANAGED_NODES)
        nodes = managed.list()
        if not nodes:
            raise unmanaged()
        ctx.status["previousVersion"] = version_before(unfinished, nodes, running=running)
        failed = check_unfinished(ctx, unfinished, nodes, target=ctx.plan.spec.version, is_name=True)
        if failed is None:
            failed = _check_image_name(ctx) if ctx.plan.spec.image else await _read_version(ctx)
        if failed is not None:
            return failed
        await check_managed(ctx, map(objects.name, nodes))
        ctx.status["singleNode"] = single_node(nodes)
        unknown_pause_nodes(ctx, managed, await ctx.watch(LOCAL_MACHINES))
        _warn_of_ignored_annotations(ctx)
        # The next phase creates objects with that image.
        problems = [*await toolkit_image.ensure(ctx), *toolkit_image.refused_waits(ctx)]
        problems += await _last_schedulable(ctx, nodes)
        return await _preflight(ctx, nodes, problems)

    async def check_again(self, ctx: ReconcileContext) -> PhaseResult:
        """Run the checks before a new attempt of a plan that has failed later; recorded versions stay."""
        nodes = (await ctx.watch(MANAGED_NODES)).list()
        if not nodes:
            raise unmanaged()
        return await _preflight(ctx, nodes, (*toolkit_image.record_again(ctx), *toolkit_image.refused_waits(ctx)))


def _warn_of_ignored_annotations(ctx: ReconcileContext) -> None:
    for key, text in ctx.plan.annotations.unknown_messages.items():
        ctx.events.warning(ctx.raw, "AnnotationUnknown", text, about=key)
    for bad in ctx.plan.annotations.without_effect:
        ctx.events.warning(ctx.raw, "AnnotationInvalid", f"{bad}; it has no effect", about=bad.key)


async def _preflight(ctx: ReconcileContext, nodes: Sequence[Object], problems: Sequence[str]) -> PhaseResult:
    annotations, plan = ctx.plan.annotations, ctx.owner.uid
    result = await ctx.preflight.check(ctx.client, plan=plan, annotations=annotations, nodes=nodes, problems=problems)
    if isinstance(result, Pending):
        return Waiting(message=result.message, after=result.retry_after, waits=_check_waits(ctx, result, nodes))
    return Failed(cause=result.cause, advice="Then retry") if isinstance(result, Rejected) else Completed()


def _check_waits(ctx: ReconcileContext, pending: Pending, nodes: Sequence[Object]) -> tuple[Wait, ...]:
    """Return a wait for each node whose kubelet has not responded, and one for API servers.

    The waits begin with the phase, so that nodes that respond one after the other do not restart them.
    """
    began = ctx.status.phase_began or ctx.now()
    waits: list[Wait] = [
        CheckedNodeWait(
            name=name,
            node=name,
            since=began,
            detail=f"its kubelet {'cannot be read' if name in pending.remedies else 'does not respond'} ({error})",
            remedies=_ways_out(name, pending.remedies.get(name, "")),
        )
        for name, error in pending.kubelets.items()
    ]
    if pending.endpoints:
        words = "; ".join(f"{name}: {error}" for name, error in pending.endpoints.items())
        waits.append(_endpoint_wait(words, began))
    if not waits:
        name = objects.name(nodes[0])
        unread = "its kubelet has not been read yet"
        waits = [CheckedNodeWait(name=name, node=name, since=began, detail=unread, remedies=_ways_out(name))]
    return tuple(waits)


def _ways_out(node: str, known: str = "") -> tuple[Remedy, ...]:
    """Return the known remedy, or the remedies for a kubelet that does not respond."""
    return (Remedy(known),) if known else node_obstacles.not_ready_ways_out(node)


def _endpoint_wait(words: str, began: datetime) -> CheckedServiceWait:
    command = f"kubectl get endpointslices -n {NAMESPACE} -l {LABEL_SERVICE_NAME}={SERVICE}"
    remedies = (Remedy("Check the API servers there", command=command),)
    detail = f"an API server does not respond ({words})"
    return CheckedServiceWait(namespace=NAMESPACE, name=SERVICE, since=began, detail=detail, remedies=remedies)


async def _last_schedulable(ctx: ReconcileContext, nodes: Sequence[Object]) -> list[str]:
    """Name the node that Rancher cannot cordon, because users have cordoned all others.

    Rancher uncordons the nodes that an earlier plan holds cordoned before it drains another one.
    """
    cordoned = sorted(objects.name(node) for node in nodes if objects.is_true(node, "spec", "unschedulable"))
    if ctx.status["singleNode"] or not cordoned or len(nodes) - len(cordoned) > 1:
        return []
    secrets, machines = await ctx.watch_all(MACHINE_PLANS, LOCAL_MACHINES)
    held = held_nodes(cordoned, secrets.list(), machines.list())
    last = [name for name in map(objects.name, nodes) if name not in cordoned or name in held]
    if len(last) != 1:
        return []
    obstacle = node_obstacles.last_schedulable([name for name in cordoned if name != last[0]])
    return [f"node {last[0]}: {obstacle.why}. {obstacle.ways_out[0]}"]


def _check_image_name(ctx: ReconcileContext) -> Failed | None:
    problem = image_problem(ctx.plan.spec.image)
    return Failed(cause=f"spec.image: {problem}", immutable="spec.image") if problem else None


async def _read_version(ctx: ReconcileContext) -> Failed | None:
    """Check and record the Version once, because a user may change or delete the Version later."""
    if ctx.status["version"]:
        return None
    name = ctx.plan.spec.version
    # An invalid name could address another API path.
    version = await ctx.client.find(VERSIONS, name, namespace=HARVESTER_SYSTEM) if is_object_name(name) else None
    if version is None:
        raise MissingObject(f"{versions.missing(name)}. {versions.CREATE}")
    spec = objects.spec(version)
    if not spec.get("isoURL"):
        raise MissingObject(versions.without_url(name))
    failed = await check_upgrade_path(ctx, target=name, minimum=spec.get("minUpgradableVersion") or "")
    if failed is None:
        ctx.status["version"] = versions.source(version)
    return failed


async def _running_version(ctx: ReconcileContext) -> str:
    setting = await ctx.client.find(SETTINGS, SETTING_SERVER_VERSION) or {}
    version = versions.running(setting)
    if not version:
        raise MissingObject(f"{versions.not_running()}. {versions.SHOW_LOG}")
    return version
