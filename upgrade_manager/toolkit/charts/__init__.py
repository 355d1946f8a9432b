"""The components of the cluster, which are charts: Rancher, Harvester and its add-ons.

rancher             Rancher's upgrade; `rancher_chart` is its chart on the ISO, `rancher_cluster` its cluster's version
managed_charts      Harvester's charts; `chart_repository` serves them, ../iso/component_versions reads theirs
workload_updates    suspends what KubeVirt would do to VMs meanwhile
system_services     what the charts deploy; `rollouts` are their Pods, `addons` the add-ons
helm                the program helm; `helm_releases` are what it stores in the cluster
cluster_resources   resources that only these modules use
"""

__all__ = [
    "addons",
    "chart_repository",
    "helm",
    "managed_charts",
    "rancher",
    "rancher_cluster",
    "system_services",
    "workload_updates",
]
