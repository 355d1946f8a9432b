"""`node pre-drain`: makes a node ready for Rancher's drain, while its VMs move to other nodes."""

from __future__ import annotations

from upgrade_manager.facts.evictions import BUDGET_GATE
from upgrade_manager.facts.vm_obstacles import EVACUATION
from upgrade_manager.facts.volumes import VOLUME_GATE
from upgrade_manager.toolkit.host.rke2_config import CONFIG_STEPS
from upgrade_manager.toolkit.host.system_agent import restore_system_agent, system_agent_override
from upgrade_manager.toolkit.run.steps import Step
from upgrade_manager.toolkit.vms.drain_taint import set_drain_taint
from upgrade_manager.toolkit.vms.evacuation import budgets_remaining, evacuate, vms_remaining
from upgrade_manager.toolkit.vms.longhorn_gate import forget_skipped_volumes, unsafe_volumes
from upgrade_manager.toolkit.vms.restore_list import report_failed_record
from upgrade_manager.toolkit.vms.vm_shutdown import (
    STEP_TIMEOUT,
    record_immovable_vms,
    report_failed_shutdown,
    stop_immovable_vms,
)

STEPS = (
    Step(name="restore-system-agent", timeout=900, missing=system_agent_override, act=restore_system_agent),
    # Rebuilding the replicas of large volumes takes hours.
    Step(name=VOLUME_GATE, timeout=12 * 3600, missing=unsafe_volumes, poll=10),
    Step(name="record-vms", timeout=300, act=record_immovable_vms, failed=report_failed_record),
    Step(name="stop-vms", timeout=STEP_TIMEOUT, act=stop_immovable_vms, failed=report_failed_shutdown),
    # Harvester's node-down controller removes the taint from Ready nodes, so that its presence cannot be awaited.
    Step(name="taint-node", timeout=300, act=set_drain_taint),
    # KubeVirt moves two VMs of a node at a time, and a user may have to decide on a VM that does not move.
    Step(name=EVACUATION, timeout=None, missing=vms_remaining, act=evacuate, repeats=True),
    Step(name=BUDGET_GATE, timeout=1800, missing=budgets_remaining),
    *CONFIG_STEPS,
    Step(name="forget-skipped-volumes", timeout=60, act=forget_skipped_volumes),
)
