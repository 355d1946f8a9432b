"""The state of a cluster after a plan that ended before all nodes run the release's Kubernetes.

failure.py and ../conclusion.py read the held nodes at the end; phases/image_cleanup.py finishes nodes that are drained
before.

Without the manager's drain hooks in its upgradeStrategy, Rancher upgrades every remaining node at once, with VMs
running on them. Therefore the hooks stay: Rancher stops at the next node's pre-drain hook, until a new attempt goes on,
the next plan takes over, or a user removes the hooks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.in_progress import is_in_progress
from upgrade_manager.api.keys import FLEET_LOCAL
from upgrade_manager.api.next_steps import MAX_NODES
from upgrade_manager.api.node_states import NodeState
from upgrade_manager.api.phases import FAILED, SUCCEEDED, PhaseName
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.api.text import name_list
from upgrade_manager.facts import drain_hooks
from upgrade_manager.facts.kubernetes import is_older
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.nodes.pending_hooks import held_nodes
from upgrade_manager.pipeline.node_upgrade.missing_nodes import has_left
from upgrade_manager.pipeline.plan_objects import find_cluster
from upgrade_manager.pipeline.selections import LOCAL_MACHINES, MACHINE_PLANS, MANAGED_NODES
from upgrade_manager.pipeline.settings import overrides, rancher, unfinished_upgrade

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext

EVENT_REASON = "UpgradeFrozen"
_TAKES_OVER = Remedy("Create a new UpgradePlan, which takes over")
_GOES_ON = Remedy("Retry it, or create a new UpgradePlan, which takes over")
#: No message has the commands: Rancher then upgrades nodes with VMs running on them.
WITHOUT_MANAGER = Remedy(
    "To go on without this manager, which stops or moves VMs before the upgrade of their node, read "
    "docs/without-manager.md in the manager's repository first"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """The nodes that Rancher's cluster holds after the end of a plan."""

    cluster: Object
    #: The upgradeStrategy before the upgrade.
    original: Any
    #: Nodes that Rancher would upgrade without the drain hooks; the hooks must stay while there are such nodes.
    nodes: list[str]
    #: Node and Secret of each hook that waits for the manager, with or without the hooks in the strategy.
    held: list[tuple[str, str]]
    #: The sentence of the event about the plan's end, which left the nodes held.
    end: str


async def record(ctx: ReconcileContext) -> bool:
    """Record the nodes that the end of this plan leaves held; return True if Rancher's strategy has to stay."""
    if not ctx.status.ended:
        # A plan that fails has recorded it before (`remedy`).
        await unfinished_upgrade.keep(ctx)
    frozen = await find_frozen(ctx)
    if frozen is None:
        return False
    # The warning comes first, because a retry after the strategy was given back finds no held node.
    warn(ctx, frozen)
    await keep_original(ctx, frozen)
    return bool(frozen.nodes)


async def keep_original(ctx: ReconcileContext, found: Frozen) -> None:
    """Keep the original strategy on Rancher's cluster, whose hooks stay, because this plan may be deleted."""
    if found.nodes and not rancher.belongs_to_another(ctx, found.cluster):
        await rancher.keep_original(ctx, found.cluster, overrides.strategy_entry(ctx))


async def find_frozen(ctx: ReconcileContext) -> Frozen | None:
    """Return the nodes that this plan or an earlier plan leaves held; None without such nodes."""
    entry = overrides.strategy_entry(ctx)
    is_given_back = entry is None and PhaseName.NODE_UPGRADE.active in ctx.status.recorded_phases()
    if is_given_back and ctx.status["singleNode"]:
        # Rancher does not upgrade a single node.
        return None
    if is_given_back and ctx.status.phase == SUCCEEDED and not await pending_nodes(ctx):
        # Rancher may have set a hook after the last check of ImageCleanup.
        return None
    cluster = await find_cluster(ctx.client)
    if cluster is None:
        return None
    if rancher.belongs_to_another(ctx, cluster) or not (entry or is_given_back):
        return await _inherited(ctx, cluster)
    nodes = await _outdated_nodes(ctx) if _has_hooks(cluster) else []
    held = await pending_nodes(ctx)
    end = f"UpgradePlan {ctx.owner.name} ended {'after' if is_given_back else 'during'} the node upgrade"
    found = Frozen(cluster=cluster, original=(entry or {}).get("original"), nodes=nodes, held=held, end=end)
    return found if nodes or held else None


async def _inherited(ctx: ReconcileContext, cluster: Object) -> Frozen | None:
    """Return the nodes that an earlier plan left held; None without such nodes, or if another plan has taken over."""
    held = await pending_nodes(ctx)
    # The earlier plan, which recorded the nodes, may be deleted. A held node's Kubernetes may be the release's.
    nodes = sorted({*await _older_nodes(ctx, cluster), *(node for node, _ in held)}) if _has_hooks(cluster) else []
    if not nodes and not held:
        return None
    plans = (await ctx.client.list(UPGRADE_PLANS)).items
    if any(is_in_progress(objects.status(plan)) for plan in plans if objects.uid(plan) != ctx.owner.uid):
        return None
    original, _ = await overrides.read_strategy(ctx, cluster)
    end = f"UpgradePlan {ctx.owner.name} ended before it continued the node upgrade of an earlier plan"
    return Frozen(cluster=cluster, original=original, nodes=nodes, held=held, end=end)


async def find(ctx: ReconcileContext) -> Frozen | None:
    """Return the nodes that a failure leaves held; None without such nodes.

    The unfinished upgrade is recorded before the failure, after which the next plan may start.
    """
    await unfinished_upgrade.keep(ctx)
    return await find_frozen(ctx)


def warn(ctx: ReconcileContext, frozen: Frozen) -> None:
    """Record the held nodes in an event of Rancher's cluster, because the plan may be deleted."""
    may_retry = ctx.status.phase == FAILED and not objects.is_deleting(ctx.raw)
    texts = [str(step) for step in (*steps(frozen), _GOES_ON if may_retry else _TAKES_OVER, WITHOUT_MANAGER)]
    ctx.events.warning(frozen.cluster, EVENT_REASON, ". ".join((frozen.end, *texts)), about=ctx.owner.uid)


def steps(frozen: Frozen) -> list[Remedy]:
    """Return what Rancher holds, and what not to do meanwhile."""
    held = [
        f"Node {node} stays cordoned, because Rancher waits for this manager (Secret {FLEET_LOCAL}/{secret}). Do not "
        "uncordon it: the next attempt or UpgradePlan continues there"
        for node, secret in frozen.held[:MAX_NODES]
    ]
    if others := [node for node, _ in frozen.held[MAX_NODES:]]:
        held.append(f"And {len(others)} more nodes stay cordoned for the same reason: {name_list(others)}")
    waits = [node for node in frozen.nodes if node not in dict(frozen.held)]
    names, several = name_list(waits), len(waits) > 1
    waiting = (
        f"Node{'s' if several else ''} {names} wait{'' if several else 's'}: drain hooks in {overrides.STRATEGY} keep "
        f"Rancher from upgrading {'them' if several else 'it'} with VMs running there. Do not remove the hooks"
    )
    return [Remedy(text) for text in (*held, *([waiting] if waits else []))]


async def pending_nodes(ctx: ReconcileContext) -> list[tuple[str, str]]:
    """Return the nodes with a pending hook; nothing if Machines cannot be listed, as on a cluster without the kind."""
    try:
        return held_nodes(*await ctx.watch_all(MACHINE_PLANS, LOCAL_MACHINES))
    except Transient:
        return []


def _has_hooks(cluster: Object) -> bool:
    return drain_hooks.has_hooks(rancher.rke_config(cluster).get("upgradeStrategy"))


async def _older_nodes(ctx: ReconcileContext, cluster: Object) -> list[str]:
    """Return the nodes with an older Kubernetes than Rancher upgrades to."""
    wanted = objects.spec(cluster).get("kubernetesVersion") or ""
    nodes = (await ctx.watch(MANAGED_NODES)).list()
    return [objects.name(node) for node in nodes if is_older(_kubelet(node), wanted)]


def _kubelet(node: Object) -> str:
    return (objects.status(node).get("nodeInfo") or {}).get("kubeletVersion") or ""


async def _outdated_nodes(ctx: ReconcileContext) -> list[str]:
    """Return the recorded nodes that may still be upgraded by Rancher."""
    nodes = await ctx.watch(MANAGED_NODES)
    release = rancher.release(ctx)
    found, missing = list[str](), list[str]()
    for name in ctx.status.known_nodes():
        state, node = ctx.status.node_state(name), nodes.get(name)
        if state is not None and state.upgraded:
            continue
        if node is None:
            missing.append(name)
            continue
        # A node that has not been drained yet may already have run the release's Kubernetes before the upgrade.
        is_past = state is not None and state.group >= NodeState.POST_DRAINING.group
        if not is_past or is_older(_kubelet(node), release):
            found.append(name)
    return sorted([*found, *await _not_left(ctx, missing)])


async def _not_left(ctx: ReconcileContext, nodes: list[str]) -> list[str]:
    """Return the nodes that have not left; all nodes if Machines cannot be listed, as on a cluster without the kind."""
    try:
        return [name for name in nodes if not await has_left(ctx, name)]
    except Transient:
        return nodes
