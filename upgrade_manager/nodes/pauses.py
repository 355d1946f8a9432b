"""The pauses of the node upgrade: which node holds before its next step, and whether anything still runs.

pipeline/node_upgrade/phase.py passes the closed rows to the gate, and report.py says where the upgrade holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.remedy import Remedy
from upgrade_manager.api.text import name_list
from upgrade_manager.facts.job_state import Progress
from upgrade_manager.nodes.gate import Closed, GateRow
from upgrade_manager.nodes.sequencing import is_in_progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from upgrade_manager.api.spec import UpgradePlanSpec
    from upgrade_manager.nodes.model import Decision, NodeView
    from upgrade_manager.nodes.node_view import Decided


def find_pauses(decided: Iterable[Decided], spec: UpgradePlanSpec, *, plan: str) -> Mapping[str, Closed]:
    """Return the row of each node that a pause holds before its next step."""
    if not spec.paused:
        return {}
    way_out = Remedy("Continue it", command=f"upgrade-manager continue {plan}")
    row = Closed(row=GateRow.PAUSE, name=plan, why="it is paused", ways_out=(way_out,))
    return {view.name: row for view, _ in decided}


def where_held(decided: Sequence[Decided], closed: Mapping[str, Closed], *, single: bool) -> str:
    """Return where a paused upgrade holds, after "holds"; empty while something of it runs, and after the last node."""
    paused = {name for name, row in closed.items() if row.row is GateRow.PAUSE}
    if any(_runs(view, decision, is_held=view.name in paused) for view, decision in decided):
        return ""
    left = [view.name for view, decision in decided if not decision.is_done]
    step = "upgrade" if single else "drain"
    held = sorted(paused & set(left))
    if held:
        return f"before the {step} of {name_list(held)}"
    return f"before the {step} of the next node" if left else ""


def _runs(view: NodeView, decision: Decision, *, is_held: bool) -> bool:
    """Return True while a Job of the node runs, Rancher works on it, or it reboots."""
    if any(job.progress is Progress.RUNNING and not job.suspended for job in view.jobs.values()):
        return True
    return not is_held and not decision.is_done and (is_in_progress(view, decision) or view.under_way)
