"""The checks that a new plan has to pass, in the order of their messages.

admission.py and preflight.py run the checks by runner.py.
"""

from __future__ import annotations

from webhook.checks import (
    addons,
    backups,
    builtin_upgrade,
    cluster,
    concurrency,
    image,
    longhorn,
    machines,
    managed_charts,
    migration_failure,
    nodes,
    pairing,
    pause_after,
    pause_list,
    plan_annotations,
    rancher_features,
    toolkit_image,
    version,
    vms,
)

CHECKS = (
    version.CHECK,
    image.CHECK,
    pause_list.CHECK,
    pause_after.CHECK,
    plan_annotations.CHECK,
    toolkit_image.CHECK,
    migration_failure.CHECK,
    concurrency.CHECK,
    builtin_upgrade.CHECK,
    nodes.CHECK,
    cluster.CHECK,
    rancher_features.CHECK,
    machines.CHECK,
    pairing.CHECK,
    longhorn.CHECK,
    backups.CHECK,
    vms.CHECK,
    managed_charts.CHECK,
    addons.CHECK,
)
