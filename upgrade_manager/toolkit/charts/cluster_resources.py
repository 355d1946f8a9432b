"""Resources of Rancher and Kubernetes that only the toolkit's commands use.

chart_repository.py, rancher.py and rollouts.py read them; kube/resources.py has the resources of the manager.
"""

from __future__ import annotations

from upgrade_manager.kube.resources import Resource

DAEMON_SETS = Resource(group="apps", version="v1", plural="daemonsets", kind="DaemonSet")
#: Rancher's repositories of Helm charts.
CLUSTER_REPOS = Resource(
    group="catalog.cattle.io", version="v1", plural="clusterrepos", kind="ClusterRepo", namespaced=False
)
RANCHER_FEATURES = Resource(
    group="management.cattle.io", version="v3", plural="features", kind="Feature", namespaced=False
)
#: Rancher's own settings; the settings of Harvester and Longhorn are other kinds.
RANCHER_SETTINGS = Resource(
    group="management.cattle.io", version="v3", plural="settings", kind="Setting", namespaced=False
)
