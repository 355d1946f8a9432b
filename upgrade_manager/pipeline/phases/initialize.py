from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM, MANAGED_LABEL, SETTING_SERVER_VERSION
from upgrade_manager.api.names import is_object_name
from upgrade_manager.api.phases import PhaseName
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import SETTINGS, VERSIONS
from upgrade_manager.pipeline.errors import BadCluster, MissingObject
from upgrade_manager.pipeline.pauselist import misnamed
from upgrade_manager.pipeline.phases.base import Completed, Failed, Phase, Waiting
from upgrade_manager.pipeline.selections import MANAGED_NODES
from upgrade_manager.preflight.check import Pending, Rejected

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.phases.base import PhaseResult


class Initialize(Phase):
    """Takes down what the upgrade starts from, and checks that the cluster is fit for it.

    The first are the Version's source, the running version and the kind of cluster; checked are disks and certificates.
    """

    name = PhaseName.INITIALIZE

    def initial_message(self, ctx: ReconcileContext) -> str:
        """The first thing that is read."""
        by_image, version = ctx.plan.spec.image, f"Version {HARVESTER_SYSTEM}/{ctx.plan.spec.version}"
        first = f"Setting {SETTING_SERVER_VERSION}" if by_image else version
        return f"waiting for {first} to be read, and for the nodes to be checked"

    async def run(self, ctx: ReconcileContext) -> PhaseResult:
        """Read everything anew until all of it is there."""
        if not ctx.plan.spec.image:
            ctx.status["version"] = await _source(ctx)
        ctx.status["previousVersion"] = await _running_version(ctx)
        managed = await ctx.watch(MANAGED_NODES)
        nodes = managed.list()
        if not nodes:
            raise BadCluster(f"no Node carries the label {MANAGED_LABEL}=true, so there is nothing to upgrade")
        ctx.status["singleNode"] = single_node(nodes)
        misnamed(ctx, managed)
        return await _checked(ctx, [objects.name(node) for node in nodes])


def single_node(nodes: Sequence[Object]) -> str | None:
    """The node's name where there is exactly one managed node."""
    return objects.name(nodes[0]) if len(nodes) == 1 else None


async def _checked(ctx: ReconcileContext, nodes: list[str]) -> PhaseResult:
    """Whether the cluster is fit for an upgrade; a silent node or API server is waited for, for a minute."""
    verdict = await ctx.preflight.check(ctx.client, plan=ctx.owner.uid, annotations=ctx.plan.annotations, nodes=nodes)
    if isinstance(verdict, Pending):
        return Waiting(message=verdict.message, after=verdict.retry_after)
    return Failed(cause=verdict.cause) if isinstance(verdict, Rejected) else Completed()


async def _source(ctx: ReconcileContext) -> dict[str, str]:
    """The Version as it is now: it may change or vanish later."""
    name = ctx.plan.spec.version
    # What is no name would be a path of its own in the request.
    exists = is_object_name(name)
    version = await ctx.find(VERSIONS, name, namespace=HARVESTER_SYSTEM) if exists else None
    if version is None:
        raise MissingObject(
            f"Version {HARVESTER_SYSTEM}/{name} does not exist; create it, or delete this plan and name another version"
        )
    spec = objects.spec(version)
    if not spec.get("isoURL"):
        raise MissingObject(f"Version {HARVESTER_SYSTEM}/{name} has no spec.isoURL; set it to the address of the ISO")
    checksum = {"isoChecksum": spec["isoChecksum"]} if spec.get("isoChecksum") else {}
    return {"isoURL": spec["isoURL"], **checksum}


async def _running_version(ctx: ReconcileContext) -> str:
    setting = await ctx.find(SETTINGS, SETTING_SERVER_VERSION) or {}
    version = setting.get("value") or setting.get("default")
    if not version:
        raise MissingObject(f"Setting {SETTING_SERVER_VERSION} has no value; Harvester itself sets it, so look there")
    return str(version)
