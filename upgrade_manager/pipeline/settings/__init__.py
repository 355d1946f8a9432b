"""Settings of the cluster that the node upgrade changes, and gives back.

overrides         the table of them: the original is recorded, the value applied, the original given back
rancher           Rancher's cluster: the one patch that makes Rancher upgrade the nodes, and its reversion
upgrade_strategy  Rancher's upgradeStrategy with the manager's drain hooks, and without them
foreign_hooks     what a user does about a drain hook of another controller

`node_upgrade/phase.py` applies them, and gives them back after the last node; the reconciler does at another end.
"""

__all__ = ["foreign_hooks", "overrides", "rancher", "upgrade_strategy"]
