"""`node post-drain`: upgrades this node's operating system after Rancher has upgraded its Kubernetes."""

from __future__ import annotations

from upgrade_manager.toolkit.charts.rancher_cluster import upgrade_pending
from upgrade_manager.toolkit.images.kept_archives import archives_left, remove_archives
from upgrade_manager.toolkit.iso.repository_wait import WAIT_FOR_NODE_RELEASE
from upgrade_manager.toolkit.os.os_upgrade import INSTALL_STEPS, PREPARE_STEPS
from upgrade_manager.toolkit.os.reboot import ARRANGE_REBOOT
from upgrade_manager.toolkit.os.reboot_hold import HOLD_BEFORE_REBOOT
from upgrade_manager.toolkit.run.attempts import WAIT_FOR_EARLIER_ATTEMPTS
from upgrade_manager.toolkit.run.steps import Step
from upgrade_manager.toolkit.vms.drain_taint import drain_taint_present, remove_drain_taint

STEPS = (
    WAIT_FOR_NODE_RELEASE,
    WAIT_FOR_EARLIER_ATTEMPTS,
    Step(name="wait-for-kubelet", timeout=3600, missing=upgrade_pending),
    Step(name="remove-archives", timeout=300, missing=archives_left, act=remove_archives),
    Step(name="remove-drain-taint", timeout=300, missing=drain_taint_present, act=remove_drain_taint),
    *PREPARE_STEPS,
    *INSTALL_STEPS,
    HOLD_BEFORE_REBOOT,
    ARRANGE_REBOOT,
)
