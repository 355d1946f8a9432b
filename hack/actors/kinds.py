"""Resources that the actors use and the manager does not, and owner references."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import Resource

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

BINDINGS = Resource(group="", version="v1", plural="bindings", kind="Binding")
CAPI_CLUSTERS = Resource(group="cluster.x-k8s.io", version="v1beta1", plural="clusters", kind="Cluster")
DAEMON_SETS = Resource(group="apps", version="v1", plural="daemonsets", kind="DaemonSet")
CLUSTER_REPOS = Resource(
    group="catalog.cattle.io", version="v1", plural="clusterrepos", kind="ClusterRepo", namespaced=False
)
INSTANCE_MANAGERS = Resource(group="longhorn.io", version="v1beta2", plural="instancemanagers", kind="InstanceManager")
FLEET_CLUSTERS = Resource(group="fleet.cattle.io", version="v1alpha1", plural="clusters", kind="Cluster")
#: Not the core group's nodes.
LONGHORN_NODES = Resource(group="longhorn.io", version="v1beta2", plural="nodes", kind="Node")
#: Rancher's own view of a cluster; the cluster that it provisions is another kind.
RANCHER_CLUSTERS = Resource(
    group="management.cattle.io", version="v3", plural="clusters", kind="Cluster", namespaced=False
)
#: Rancher's own settings; Harvester's and Longhorn's are other kinds.
RANCHER_SETTINGS = Resource(
    group="management.cattle.io", version="v3", plural="settings", kind="Setting", namespaced=False
)


def controller_reference(resource: Resource, owner: Object, *, blocks: bool = True) -> Object:
    """Build the ownerReference of a controller."""
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    identity = {"name": objects.name(owner), "uid": objects.uid(owner)}
    return {**head, **identity, "controller": True, "blockOwnerDeletion": blocks}
