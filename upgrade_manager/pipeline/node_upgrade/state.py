"""The state of the node upgrade in one reconcile, and the memory of the phase from one to the next.

`phase.py` creates and completes both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.nodes.node_view import Decided, Observed, Target
    from upgrade_manager.pipeline.node_upgrade.missing_nodes import MissingNode


@dataclass(slots=True, kw_only=True)
class Handled:
    """The observations of one plan that this process has handled; it handles them again only after a change."""

    plan_uid: str = ""
    #: `_log_anomalies` sets it: the inputs of the anomalies that are logged.
    anomalies: tuple[object, ...] = ()
    #: `_report` sets it: the reported decisions, unless they move a node, which the status may not show yet.
    decisions: list[Decided] | None = None
    #: `_report` sets it once the events about the changed settings are recorded.
    settings: bool = False
    #: `_keep_hooks` sets it: the resourceVersion of Rancher's cluster that had the hooks and the original strategy.
    cluster: str = ""


@dataclass(slots=True, kw_only=True)
class State:
    """The observations and decisions of one reconcile; `_observe` creates it, and the steps of `run` complete it."""

    #: From here to `unknown_pause_nodes`: set by `_observe`, and not changed afterwards.
    observed: Observed
    target: Target
    #: The name of a single-node cluster's node; None if Rancher drives the upgrade.
    single: str | None
    #: The message about names in pauseNodes that match no node; empty without any.
    unknown_pause_nodes: str
    #: Set by `run` and `_finish_drains` before their steps: what the earlier reconciles of the plan have handled.
    handled: Handled
    #: Rancher's cluster as observed: `run` sets it before the steps, and `_begin` removes it when it has changed it.
    #: None also for a single node, and once its strategy is given back.
    cluster: Object | None = None
    #: Set by `_decide`; the later steps read it. `one_at_a_time` has removed the starts that have to wait.
    decisions: list[Decided] = field(default_factory=list)
    #: Recorded nodes that cannot be observed: set by `_decide`, beside their decisions.
    missing: dict[str, MissingNode] = field(default_factory=dict)
