"""The components of the cluster, which are charts: Rancher, Harvester and its add-ons.

rancher             Rancher's upgrade; `rancher_chart` is the chart on the ISO, `rancher_cluster` the Kubernetes version
rancher_values      what the two releases change in its values; `rancher_features` are Rancher's features
capi_cluster        waits until Rancher does not work on the cluster
fleet_agent         lets Fleet replace its agent; `fleet_address` keeps the address with which it does so
capi_webhooks       removes what Rancher 2.14 leaves behind of Rancher 2.13's Cluster API
internal_certificate  what v1.9 needs, with `administrated_cluster` and `traefik`
aggregation_secret  the Secret that Rancher's upgrade of its agents needs
managed_charts      Harvester's charts; `chart_repository` serves them, ../iso/component_versions reads their versions
multus              the failure policy of RKE2's chart of VM networks
overcommit          pins the default of a Setting of Harvester
instance_managers   the Pods with volumes of each node; `longhorn_nodes` are these nodes
chart_files         the index and the archives of that repository; `cdi_crd` applies a definition from one
system_services     the services that the charts deploy; `rollouts` are their Pods
addons              the add-ons; `addon_values` changes one tag in their values
helm                the program helm; `helm_releases` are helm's records in the cluster
cluster_resources   resources that only these modules use
"""

__all__ = [
    "addons",
    "administrated_cluster",
    "aggregation_secret",
    "capi_cluster",
    "capi_webhooks",
    "cdi_crd",
    "chart_files",
    "chart_repository",
    "fleet_address",
    "fleet_agent",
    "helm",
    "instance_managers",
    "internal_certificate",
    "managed_charts",
    "multus",
    "overcommit",
    "rancher",
    "rancher_cluster",
    "rancher_features",
    "system_services",
    "traefik",
]
