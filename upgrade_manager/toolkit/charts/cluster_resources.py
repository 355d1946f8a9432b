"""Resources of Rancher, RKE2 and Kubernetes that only the toolkit's commands use.

chart_repository.py, multus.py, rancher.py and rollouts.py read them; kube/resources.py has those of the manager.
"""

from __future__ import annotations

from upgrade_manager.kube.resources import Resource

DAEMON_SETS = Resource(group="apps", version="v1", plural="daemonsets", kind="DaemonSet")
#: Settings of the Helm charts that RKE2 installs.
HELM_CHART_CONFIGS = Resource(group="helm.cattle.io", version="v1", plural="helmchartconfigs", kind="HelmChartConfig")
#: Rancher's repositories of Helm charts.
CLUSTER_REPOS = Resource(
    group="catalog.cattle.io", version="v1", plural="clusterrepos", kind="ClusterRepo", namespaced=False
)
#: Rancher's clusters as their administrators see them; `local` is the one in which Rancher itself runs.
RANCHER_CLUSTERS = Resource(
    group="management.cattle.io", version="v3", plural="clusters", kind="Cluster", namespaced=False
)
RANCHER_FEATURES = Resource(
    group="management.cattle.io", version="v3", plural="features", kind="Feature", namespaced=False
)
#: Rancher's own settings; the settings of Harvester and Longhorn are other kinds.
RANCHER_SETTINGS = Resource(
    group="management.cattle.io", version="v3", plural="settings", kind="Setting", namespaced=False
)
