"""Nodes whose Kubernetes Rancher has upgraded without a drain, or whose drain it has forgotten.

waits.py names them as waits, and report.py reports a node whose hook is still pending; nodes/next_node.py has the
message, and managed_nodes.py records which nodes ran the release's Kubernetes before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import FLEET_LOCAL, PROVISIONING_CLUSTER
from upgrade_manager.api.text import name_list
from upgrade_manager.blockers.known_wait import LostHookWait
from upgrade_manager.facts import drain_hooks, node_obstacles
from upgrade_manager.facts.kubernetes import is_older
from upgrade_manager.nodes.next_node import kubelet_of
from upgrade_manager.pipeline.settings import rancher

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Store
    from upgrade_manager.nodes.model import NodeView
    from upgrade_manager.pipeline.context import ReconcileContext

#: The reason of the event, and of the node's message.
UNDRAINED = "UpgradedUndrained"


@dataclass(frozen=True, slots=True, kw_only=True)
class LostHooks:
    """The waits for nodes that Rancher drains only after its generation was raised."""

    ctx: ReconcileContext
    nodes: Store
    #: Rancher's cluster; None if it is not known.
    cluster: Object | None

    def undrained(self, names: Sequence[str], *, kubernetes: str, since: datetime) -> LostHookWait:
        """Return the wait for nodes that run the release's Kubernetes and have no hook."""
        passed = self._passed(names, kubernetes)
        shown = passed or names
        why = f"{name_list(shown)}: {node_obstacles.undrained(kubernetes, nodes=len(shown))}"
        return self._wait(why, since=since, is_certain=bool(passed))

    def forgotten(self, views: Iterable[NodeView]) -> LostHookWait:
        """Return the wait for nodes whose drain has begun, and of which no annotation is left."""
        outdated = {view.name: view.kubernetes_outdated for view in views}
        names = sorted(outdated)
        began = self.ctx.informers.first_seen.since(("forgotten", *names), now=self.ctx.now())
        # Rancher still has to drain a node whose Kubernetes is older.
        is_certain = not self._is_raised and not all(outdated.values())
        return self._wait(f"{name_list(names)}: {node_obstacles.FORGOTTEN}", since=began, is_certain=is_certain)

    def _passed(self, names: Sequence[str], kubernetes: str) -> Sequence[str]:
        """Return the nodes whose Kubernetes Rancher has upgraded in this upgrade: it drains them no more.

        An earlier version has not recorded which nodes were older; there, a node that is still older shows it.
        """
        if self._is_raised:
            return ()
        same = self.ctx.status["sameKubernetes"]
        if same is not None:
            return [name for name in names if name not in same]
        has_older = any(is_older(kubelet, kubernetes) for _, kubelet in self.nodes.derive(kubelet_of))
        return names if has_older else ()

    @property
    def _is_raised(self) -> bool:
        """True if a user has raised the generation, as the remedy asks: Rancher drains all nodes once more."""
        return self.cluster is not None and rancher.generation(self.cluster) > self._requested

    @property
    def _requested(self) -> int:
        return int(self.ctx.status["provisionGeneration"] or 0)

    def _wait(self, why: str, *, since: datetime, is_certain: bool) -> LostHookWait:
        generation = rancher.generation(self.cluster) if self.cluster else self._requested
        return LostHookWait(
            namespace=FLEET_LOCAL,
            name=PROVISIONING_CLUSTER,
            since=since,
            detail=why,
            remedies=(drain_hooks.drain_again(generation),),
            is_certain=is_certain,
        )


def report_undrained(ctx: ReconcileContext, views: Iterable[NodeView]) -> None:
    """Report nodes whose Kubernetes Rancher has upgraded while their pre-drain hook is pending; their drain goes on.

    Rancher does so if another client removes the strategy while it waits: it keeps the hook, evicts no Pod before the
    acknowledgement, and uncordons the node only after the post-drain hook.
    """
    same = ctx.status["sameKubernetes"]
    for view in views:
        if same is None or view.name in same or ctx.status.node_reason(view.name) == UNDRAINED:
            continue
        text = node_obstacles.upgraded_undrained(view.kubelet)
        ctx.events.warning(ctx.raw, UNDRAINED, f"Node {view.name}: {text}", about=view.name)
        ctx.status.warn_node(view.name, UNDRAINED, text)
