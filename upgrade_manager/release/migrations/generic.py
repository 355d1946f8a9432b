"""The rows of every upgrade, whatever its releases; pairs.py adds those of the pair.

toolkit/charts and toolkit/commands/cluster_upgrade.py carry them out.
"""

from __future__ import annotations

from upgrade_manager.release.migrations.row import Place, Row, manifests

MULTUS = Row(
    id="multus-failure-policy",
    place=Place.BEFORE_RANCHER,
    step="The failure policy of RKE2's chart rke2-multus is set to abort. By default RKE2 would reinstall the chart "
    "after an interrupted upgrade, and the deletion of its CustomResourceDefinition would delete all VM networks.",
    changes=("HelmChartConfig kube-system/rke2-multus: spec.failurePolicy",),
    done_if="spec.failurePolicy is abort",
    undo="None: the policy stays.",
    sources=(manifests("v1.8.0", 10),),
)

ROWS = (MULTUS,)
