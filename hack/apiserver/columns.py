"""The printer columns of built-in kinds, as `kubectl get` users know them.

A column's path is JSONPath as in a CustomResourceDefinition, or, with `=` in front, a CEL expression over `self` for
what JSONPath cannot compute. An expression about something absent leaves its cell empty.
"""

from __future__ import annotations

from dataclasses import replace

from hack.apiserver.resources import Column

NAME = Column(name="Name", type="string", json_path=".metadata.name", format="name", description="Name of the object")
AGE = Column(
    name="Age", type="date", json_path=".metadata.creationTimestamp", description="Time since the object was created"
)


def _text(name: str, path: str, *, priority: int = 0) -> Column:
    return Column(name=name, type="string", json_path=path, priority=priority)


def _number(name: str, path: str, *, priority: int = 0) -> Column:
    return Column(name=name, type="integer", json_path=path, priority=priority)


def _date(name: str, path: str, *, priority: int = 0) -> Column:
    return Column(name=name, type="date", json_path=path, priority=priority)


_READY_NODE = (
    "=(!has(self.status) || !has(self.status.conditions) || !self.status.conditions.exists(c, c.type == 'Ready')"
    " ? 'Unknown' : self.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True') ? 'Ready' : 'NotReady')"
    " + (has(self.spec) && has(self.spec.unschedulable) && self.spec.unschedulable ? ',SchedulingDisabled' : '')"
)
_ROLE = "node-role.kubernetes.io/"
_ROLES = (
    f"=has(self.metadata.labels) && self.metadata.labels.exists(k, k.startsWith('{_ROLE}'))"
    f" ? self.metadata.labels.filter(k, k.startsWith('{_ROLE}')).map(k, k.substring({len(_ROLE)})).sort().join(',')"
    " : '<none>'"
)
_POD_READY = (
    "=string(has(self.status) && has(self.status.containerStatuses)"
    " ? self.status.containerStatuses.filter(c, c.ready).size() : 0)"
    " + '/' + string(self.spec.containers.size())"
)
_POD_STATUS = (
    "=has(self.metadata.deletionTimestamp) ? 'Terminating'"
    " : has(self.status) && has(self.status.containerStatuses)"
    " && self.status.containerStatuses.exists(c, has(c.state) && has(c.state.waiting))"
    " ? self.status.containerStatuses.filter(c, has(c.state) && has(c.state.waiting))[0].state.waiting.reason"
    " : has(self.status) && has(self.status.reason) ? self.status.reason"
    " : has(self.status) && has(self.status.phase) ? (self.status.phase == 'Succeeded' ? 'Completed'"
    " : self.status.phase == 'Failed' ? 'Error' : self.status.phase) : 'Unknown'"
)
_RESTARTS = (
    "=has(self.status) && has(self.status.containerStatuses)"
    " ? self.status.containerStatuses.map(c, has(c.restartCount) ? c.restartCount : 0).sum() : 0"
)
_JOB_STATUS = (
    "=has(self.status) && has(self.status.conditions)"
    " && self.status.conditions.exists(c, c.type == 'Complete' && c.status == 'True') ? 'Complete'"
    " : has(self.status) && has(self.status.conditions)"
    " && self.status.conditions.exists(c, c.type == 'Failed' && c.status == 'True') ? 'Failed'"
    " : has(self.metadata.deletionTimestamp) ? 'Terminating'"
    " : has(self.spec.suspend) && self.spec.suspend ? 'Suspended' : 'Running'"
)
_COMPLETIONS = (
    "=string(has(self.status) && has(self.status.succeeded) ? self.status.succeeded : 0)"
    " + '/' + string(has(self.spec.completions) ? self.spec.completions : 1)"
)
_EVENT_OBJECT = "=self.involvedObject.kind.lowerAscii() + '/' + self.involvedObject.name"
_IMAGES = "=self.spec.template.spec.containers.map(c, c.image).join(',')"
_CONTAINERS = "=self.spec.template.spec.containers.map(c, c.name).join(',')"
_SELECTOR = "=self.spec.selector.matchLabels.map(k, k + '=' + self.spec.selector.matchLabels[k]).sort().join(',')"
_LAST_SEEN = (
    "=has(self.lastTimestamp) && self.lastTimestamp != null ? self.lastTimestamp"
    " : has(self.eventTime) && self.eventTime != null ? self.eventTime"
    " : has(self.firstTimestamp) ? self.firstTimestamp : self.metadata.creationTimestamp"
)


def _count(field: str) -> str:
    """A number in status that is 0 until someone has written it."""
    return f"=has(self.status) && has(self.status.{field}) ? self.status.{field} : 0"


def _ready_of(wanted: str = "replicas") -> str:
    return (
        "=string(has(self.status) && has(self.status.readyReplicas) ? self.status.readyReplicas : 0)"
        f" + '/' + string(has(self.spec.{wanted}) ? self.spec.{wanted} : 1)"
    )


_WORKLOAD_WIDE = (
    _text("Containers", _CONTAINERS, priority=1),
    _text("Images", _IMAGES, priority=1),
    _text("Selector", _SELECTOR, priority=1),
)

#: By plural and group. The name's column comes first unless it is among them; kinds not here show name and age.
COLUMNS: dict[str, tuple[Column, ...]] = {
    "nodes": (
        _text("Status", _READY_NODE),
        _text("Roles", _ROLES),
        AGE,
        _text("Version", ".status.nodeInfo.kubeletVersion"),
        _text("Internal-IP", ".status.addresses[?(@.type=='InternalIP')].address", priority=1),
        _text("External-IP", ".status.addresses[?(@.type=='ExternalIP')].address", priority=1),
        _text("OS-Image", ".status.nodeInfo.osImage", priority=1),
        _text("Kernel-Version", ".status.nodeInfo.kernelVersion", priority=1),
        _text("Container-Runtime", ".status.nodeInfo.containerRuntimeVersion", priority=1),
    ),
    "namespaces": (_text("Status", ".status.phase"), AGE),
    "pods": (
        _text("Ready", _POD_READY),
        _text("Status", _POD_STATUS),
        _text("Restarts", _RESTARTS),
        AGE,
        _text("IP", ".status.podIP", priority=1),
        _text("Node", ".spec.nodeName", priority=1),
    ),
    "secrets": (
        _text("Type", ".type"),
        _number("Data", "=has(self.data) ? self.data.size() : 0"),
        AGE,
    ),
    "configmaps": (_number("Data", "=has(self.data) ? self.data.size() : 0"), AGE),
    "services": (
        _text("Type", "=has(self.spec.type) ? self.spec.type : 'ClusterIP'"),
        _text("Cluster-IP", "=has(self.spec.clusterIP) ? self.spec.clusterIP : '<none>'"),
        _text("External-IP", "=has(self.spec.externalIPs) ? self.spec.externalIPs.join(',') : '<none>'"),
        _text(
            "Port(s)",
            "=has(self.spec.ports) ? self.spec.ports.map(p, string(p.port) + '/'"
            " + (has(p.protocol) ? p.protocol : 'TCP')).join(',') : '<none>'",
        ),
        AGE,
    ),
    "events": (
        _date("Last Seen", _LAST_SEEN),
        _text("Type", ".type"),
        _text("Reason", ".reason"),
        _text("Object", _EVENT_OBJECT),
        _text("Subobject", ".involvedObject.fieldPath", priority=1),
        _text("Source", ".source.component", priority=1),
        _text("Message", "=self.message.trim()"),
        _date("First Seen", "=has(self.firstTimestamp) ? self.firstTimestamp : self.eventTime", priority=1),
        _number("Count", "=has(self.count) ? self.count : 1", priority=1),
        replace(NAME, priority=1),
    ),
    "persistentvolumeclaims": (
        _text("Status", ".status.phase"),
        _text("Volume", ".spec.volumeName"),
        _text("Capacity", ".status.capacity.storage"),
        _text("Access Modes", "=self.status.accessModes.join(',')"),
        _text("StorageClass", ".spec.storageClassName"),
        AGE,
    ),
    "deployments.apps": (
        _text("Ready", _ready_of()),
        _number("Up-to-date", _count("updatedReplicas")),
        _number("Available", _count("availableReplicas")),
        AGE,
        *_WORKLOAD_WIDE,
    ),
    "replicasets.apps": (
        _number("Desired", "=has(self.spec.replicas) ? self.spec.replicas : 1"),
        _number("Current", _count("replicas")),
        _number("Ready", _count("readyReplicas")),
        AGE,
        *_WORKLOAD_WIDE,
    ),
    "statefulsets.apps": (_text("Ready", _ready_of()), AGE),
    "daemonsets.apps": (
        _number("Desired", _count("desiredNumberScheduled")),
        _number("Current", _count("currentNumberScheduled")),
        _number("Ready", _count("numberReady")),
        _number("Up-to-date", _count("updatedNumberScheduled")),
        _number("Available", _count("numberAvailable")),
        AGE,
        *_WORKLOAD_WIDE,
    ),
    "jobs.batch": (
        _text("Status", _JOB_STATUS),
        _text("Completions", _COMPLETIONS),
        Column(name="Duration", type="duration", json_path=".status"),
        AGE,
        *_WORKLOAD_WIDE,
    ),
    "leases.coordination.k8s.io": (_text("Holder", ".spec.holderIdentity"), AGE),
    "endpointslices.discovery.k8s.io": (
        _text("AddressType", ".addressType"),
        _text("Ports", "=has(self.ports) ? self.ports.map(p, string(p.port)).join(',') : '<unset>'"),
        _text("Endpoints", "=self.endpoints.map(e, e.addresses.join(',')).join(',')"),
        AGE,
    ),
    "poddisruptionbudgets.policy": (
        _text("Min Available", "=has(self.spec.minAvailable) ? string(self.spec.minAvailable) : 'N/A'"),
        _text("Max Unavailable", "=has(self.spec.maxUnavailable) ? string(self.spec.maxUnavailable) : 'N/A'"),
        _number("Allowed Disruptions", _count("disruptionsAllowed")),
        AGE,
    ),
    "customresourcedefinitions.apiextensions.k8s.io": (
        Column(name="Created At", type="string", json_path=".metadata.creationTimestamp"),
    ),
    "clusterrolebindings.rbac.authorization.k8s.io": (
        _text("Role", "=self.roleRef.kind + '/' + self.roleRef.name"),
        AGE,
    ),
    "rolebindings.rbac.authorization.k8s.io": (_text("Role", "=self.roleRef.kind + '/' + self.roleRef.name"), AGE),
    "clusterroles.rbac.authorization.k8s.io": (
        Column(name="Created At", type="string", json_path=".metadata.creationTimestamp"),
    ),
    "roles.rbac.authorization.k8s.io": (
        Column(name="Created At", type="string", json_path=".metadata.creationTimestamp"),
    ),
    "validatingwebhookconfigurations.admissionregistration.k8s.io": (
        _number("Webhooks", "=has(self.webhooks) ? self.webhooks.size() : 0"),
        AGE,
    ),
    "storageclasses.storage.k8s.io": (_text("Provisioner", ".provisioner"), AGE),
}
COLUMNS["mutatingwebhookconfigurations.admissionregistration.k8s.io"] = COLUMNS[
    "validatingwebhookconfigurations.admissionregistration.k8s.io"
]
