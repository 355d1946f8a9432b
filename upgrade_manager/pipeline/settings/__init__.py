"""Settings of the cluster that the node upgrade changes, and gives back.

overrides         the table of settings: the original is recorded, the value applied
giving_back       the end of the overrides: the original given back
rancher           Rancher's cluster: the one patch that makes Rancher upgrade the nodes, and its reversion
unfinished_upgrade  the annotation about an upgrade that nodes have not reached yet
update_methods    KubeVirt's list of workload update methods, in Harvester's chart
upgrade_strategy  Rancher's upgradeStrategy with and without the manager's drain hooks
earlier_records   the settings of a plan that a manager without a ledger began
left_entries      the ledger that a deleted plan has left on Rancher's cluster

`node_upgrade/phase.py` applies the settings, and gives them back after the last node; the reconciler gives them back at
any other end.
"""

__all__ = [
    "earlier_records",
    "giving_back",
    "left_entries",
    "overrides",
    "rancher",
    "unfinished_upgrade",
    "update_methods",
    "upgrade_strategy",
]
