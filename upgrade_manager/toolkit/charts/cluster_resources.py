"""Resources of Rancher, RKE2 and Kubernetes that only the toolkit's commands use.

the modules of this package read them; kube/resources.py has those of the manager.
"""

from __future__ import annotations

from upgrade_manager.kube.resources import Resource

#: Of Cluster API, from which Rancher provisions.
CAPI_CLUSTERS = Resource(
    group="cluster.x-k8s.io",
    version="v1beta1",
    plural="clusters",
    kind="Cluster",
    versions=("v1beta1", "v1beta2"),
)
DAEMON_SETS = Resource(group="apps", version="v1", plural="daemonsets", kind="DaemonSet")
FLEET_CLUSTERS = Resource(group="fleet.cattle.io", version="v1alpha1", plural="clusters", kind="Cluster")
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
#: Not the core group's nodes.
LONGHORN_NODES = Resource(group="longhorn.io", version="v1beta2", plural="nodes", kind="Node")
INSTANCE_MANAGERS = Resource(group="longhorn.io", version="v1beta2", plural="instancemanagers", kind="InstanceManager")
#: Rancher's own settings; the settings of Harvester and Longhorn are other kinds.
RANCHER_SETTINGS = Resource(
    group="management.cattle.io", version="v3", plural="settings", kind="Setting", namespaced=False
)
