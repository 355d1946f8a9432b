"""The state of the node upgrade in one reconcile, and the memory of the phase between reconciles.

`phase.py` creates and completes `State` and `Handled`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from upgrade_manager.nodes.model import Decisions
from upgrade_manager.pipeline.node_upgrade.contest import Contest

if TYPE_CHECKING:
    from upgrade_manager.facts.missing_nodes import MissingNode
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.nodes.gate import Closed
    from upgrade_manager.nodes.node_view import Observed, Target


@dataclass(slots=True, kw_only=True)
class Handled:
    """The observations of one plan that this process has handled; only changed observations are handled again."""

    plan_uid: str = ""
    #: The inputs of the anomalies that are logged; `_log_anomalies` sets the field.
    anomalies: tuple[object, ...] = ()
    #: The reported decisions, unless they move a node, which the status may not show yet; `report` sets the field.
    decisions: Decisions | None = None
    #: True once the milestones of all nodes are recorded, which an earlier process may not have; `report` sets it, too.
    milestones: bool = False
    #: True once the events about the changed settings are recorded; `report` sets the field.
    settings: bool = False
    #: True once a new attempt of the plan has changed the settings again; `_change_again` sets the field.
    is_resumed: bool = False
    #: True once KubeVirt's updates of VMs are suspended in a new attempt; guarded_nodes.py sets the field.
    is_suspended: bool = False
    #: Spec and annotations of Rancher's cluster with the hooks and the original strategy; `_keep_hooks` sets the field.
    cluster: tuple[object, object] | None = None
    #: The removals of the hooks by other clients; `_keep_hooks` counts them.
    contest: Contest = field(default_factory=Contest)


@dataclass(slots=True, kw_only=True)
class State:
    """The observations and decisions of one reconcile; `_observe` creates it, and the steps of `run` complete it."""

    #: `_observe` sets the fields from here to `unknown_pause_nodes`, which do not change afterwards.
    observed: Observed
    target: Target
    #: The name of a single-node cluster's node; None if Rancher drives the upgrade.
    single: str | None
    #: The message about names in pauseNodes that match no node; empty without such names.
    unknown_pause_nodes: str
    #: The observations that earlier reconciles of the plan have handled; `run` and `finish_drains` set the field.
    handled: Handled
    #: Rancher's cluster as observed, which `run` sets before the steps; None for a single node, and once the strategy
    #: is given back.
    cluster: Object | None = None
    #: The same Cluster for the gate, also while the strategy is given back; `_observe` sets the field.
    requested: Object | None = None
    #: The decisions of `_decide`, which later steps read. `one_at_a_time` has removed the starts that have to wait.
    decisions: Decisions = field(default_factory=Decisions)
    #: The closed row of the gate by node, and the row of Rancher; `_decide` sets both.
    closed: dict[str, Closed] = field(default_factory=dict)
    set_back: Closed | None = None
    #: Recorded nodes that cannot be observed; `_decide` sets the field together with the decisions.
    missing: dict[str, MissingNode] = field(default_factory=dict)
    #: Recorded nodes that have left for good; `_decide` sets the field, too.
    left: list[str] = field(default_factory=list)
