"""`node single-node-upgrade`: upgrades Kubernetes and the operating system of a cluster's only node.

The steps that may refuse the upgrade run before the VMs are stopped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.toolkit.charts.rancher_cluster import (
    check_drain_hooks,
    set_version,
    upgrade_pending,
    version_missing,
)
from upgrade_manager.toolkit.host.kubernetes_version import kubelet_outdated
from upgrade_manager.toolkit.host.rke2_config import CONFIG_STEPS
from upgrade_manager.toolkit.host.system_agent import restore_system_agent, system_agent_override
from upgrade_manager.toolkit.images.kept_archives import archives_left, remove_archives
from upgrade_manager.toolkit.iso.repository_wait import WAIT_FOR_NODE_RELEASE
from upgrade_manager.toolkit.os.os_release import runs_release
from upgrade_manager.toolkit.os.os_upgrade import INSTALL_STEPS, PREPARE_STEPS
from upgrade_manager.toolkit.os.reboot import ARRANGE_REBOOT
from upgrade_manager.toolkit.os.reboot_hold import HOLD_BEFORE_REBOOT
from upgrade_manager.toolkit.run.attempts import WAIT_FOR_EARLIER_ATTEMPTS
from upgrade_manager.toolkit.run.steps import Step
from upgrade_manager.toolkit.vms.drain_taint import drain_taint_present, remove_drain_taint
from upgrade_manager.toolkit.vms.vm_shutdown import STEP_TIMEOUT, report_failed_shutdown, stop_all_vms, vms_running

if TYPE_CHECKING:
    from upgrade_manager.toolkit.run.context import ToolkitContext


async def vms_at_risk(context: ToolkitContext) -> str:
    """Return the VMs that run; empty if the node neither restarts Kubernetes nor reboots."""
    if await runs_release(context) and not await kubelet_outdated(context):
        return ""
    return await vms_running(context)


STEPS = (
    WAIT_FOR_NODE_RELEASE,
    WAIT_FOR_EARLIER_ATTEMPTS,
    Step(name="check-drain-hooks", timeout=300, act=check_drain_hooks),
    *PREPARE_STEPS,
    Step(name="stop-vms", timeout=STEP_TIMEOUT, missing=vms_at_risk, act=stop_all_vms, failed=report_failed_shutdown),
    *CONFIG_STEPS,
    Step(name="restore-system-agent", timeout=900, missing=system_agent_override, act=restore_system_agent),
    Step(name="set-kubernetes-version", timeout=900, missing=version_missing, act=set_version),
    # The API server is away for minutes during this step.
    Step(name="wait-for-kubelet", timeout=2 * 3600, missing=upgrade_pending),
    Step(name="remove-archives", timeout=300, missing=archives_left, act=remove_archives),
    Step(name="remove-drain-taint", timeout=900, missing=drain_taint_present, act=remove_drain_taint),
    *INSTALL_STEPS,
    HOLD_BEFORE_REBOOT,
    ARRANGE_REBOOT,
)
