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

#: The value of Rancher's chart on all clusters, and the value for two nodes that can run Rancher: negative numbers are
#: the most replicas, one on each node.
THREE_REPLICAS, TWO_REPLICAS = -3, -2

WITNESS_REPLICAS = Row(
    id="witness-replicas",
    place=Place.WITH_RANCHER,
    step="Where one of exactly three nodes is a witness, the replicas of Rancher's chart become -2. A third Pod "
    "could not be scheduled.",
    changes=("Helm release cattle-system/rancher: value replicas",),
    done_if="the value is not -3, no node is a witness, or the cluster has not three nodes",
    undo="None is needed.",
    sources=(manifests("v1.8.0", 759),),
)

ROWS = (MULTUS, WITNESS_REPLICAS)
