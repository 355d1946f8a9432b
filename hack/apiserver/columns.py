"""The printer columns of built-in kinds, as `kubectl get` shows them.

A column's path is JSONPath as in a CustomResourceDefinition, or a CEL expression over `self` after a `=`. Where an
expression has no value, the column's `absent` text is shown.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hack.apiserver.resources import Column

if TYPE_CHECKING:
    from hack.apiserver.resources import Row

NAME = Column(name="Name", type="string", json_path=".metadata.name", format="name", description="Name of the object")
#: Custom columns have the type date; built-in ones declare the same column as string.
AGE = Column(
    name="Age", type="date", json_path=".metadata.creationTimestamp", description="Time since the object was created"
)
BUILTIN_AGE = replace(AGE, declared="string", absent="<unknown>")
_NONE, _UNSET, _UNKNOWN = "<none>", "<unset>", "<unknown>"


def _text(name: str, path: str, *, priority: int = 0, absent: str = "") -> Column:
    return Column(name=name, type="string", json_path=path, priority=priority, absent=absent)


def _wide(name: str, path: str, *, absent: str = _NONE) -> Column:
    return _text(name, path, priority=1, absent=absent)


def _number(name: str, path: str, *, priority: int = 0, declared: str = "") -> Column:
    return Column(name=name, type="integer", json_path=path, priority=priority, declared=declared)


def _date(name: str, path: str, *, priority: int = 0) -> Column:
    return Column(name=name, type="date", json_path=path, priority=priority, declared="string", absent=_UNKNOWN)


_CREATED = Column(name="Created At", type="string", json_path=".metadata.creationTimestamp", declared="date")
_READY_NODE = (
    "=(!has(self.status) || !has(self.status.conditions) || !self.status.conditions.exists(c, c.type == 'Ready')"
    " ? 'Unknown' : self.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True') ? 'Ready' : 'NotReady')"
    " + (has(self.spec) && has(self.spec.unschedulable) && self.spec.unschedulable ? ',SchedulingDisabled' : '')"
)
_ROLE = "node-role.kubernetes.io/"
_ROLES = (
    f"=self.metadata.labels.filter(k, k.startsWith('{_ROLE}') && k.size() > {len(_ROLE)})"
    f".map(k, k.substring({len(_ROLE)})).sort().join(',')"
)
_POD_READY = (
    "=string(has(self.status) && has(self.status.containerStatuses)"
    " ? self.status.containerStatuses.filter(c, c.ready).size() : 0)"
    " + '/' + string(self.spec.containers.size())"
)


def _why(state: str) -> str:
    """Return why a container is waiting or failed."""
    return (
        f"(has({state}.waiting) ? {state}.waiting.reason"
        f" : has({state}.terminated.reason) && {state}.terminated.reason != '' ? {state}.terminated.reason"
        f" : 'ExitCode:' + string({state}.terminated.exitCode))"
    )


_STOPPED = "has(c.state) && (has(c.state.waiting) || has(c.state.terminated))"
_DONE = "has(c.state) && has(c.state.terminated) && c.state.terminated.exitCode == 0"
_INITIAL = "self.status.initContainerStatuses"
_POD_STATUS = (
    "=has(self.metadata.deletionTimestamp) && !(has(self.status) && has(self.status.phase)"
    " && self.status.phase in ['Succeeded', 'Failed']) ? 'Terminating'"
    f" : has({_INITIAL}) && {_INITIAL}.exists(c, !({_DONE}))"
    f" ? 'Init:' + ({_INITIAL}.exists(c, {_STOPPED} && !({_DONE}) && {_why('c.state')} != 'PodInitializing')"
    f" ? {_INITIAL}.filter(c, {_STOPPED} && !({_DONE})).map(c, {_why('c.state')})[0]"
    f" : string({_INITIAL}.filter(c, {_DONE}).size()) + '/' + string(self.spec.initContainers.size()))"
    f" : has(self.status.containerStatuses) && self.status.containerStatuses.exists(c, {_STOPPED})"
    f" ? self.status.containerStatuses.filter(c, {_STOPPED}).map(c, {_why('c.state')})[0]"
    " : has(self.status.conditions) && self.status.conditions.exists("
    "c, c.type == 'PodScheduled' && has(c.reason) && c.reason == 'SchedulingGated') ? 'SchedulingGated'"
    " : has(self.status.reason) && self.status.reason != '' ? self.status.reason : self.status.phase"
)
_RESTARTS = (
    "=has(self.status) && has(self.status.containerStatuses)"
    " ? self.status.containerStatuses.map(c, has(c.restartCount) ? c.restartCount : 0).sum() : 0"
)
_JOB_CONDITIONS = ("Complete", "Failed", "Suspended", "SuccessCriteriaMet", "FailureTarget")


def _job_status() -> str:
    has = "has(self.status) && has(self.status.conditions) && self.status.conditions.exists"
    conditions = {kind: f"{has}(c, c.type == '{kind}' && c.status == 'True') ? '{kind}'" for kind in _JOB_CONDITIONS}
    terminating = "has(self.metadata.deletionTimestamp) ? 'Terminating'"
    return "=" + " : ".join(
        [conditions.pop("Complete"), conditions.pop("Failed"), terminating, *conditions.values(), "'Running'"]
    )


_COMPLETIONS = (
    "=string(has(self.status) && has(self.status.succeeded) ? self.status.succeeded : 0) + '/'"
    " + (has(self.spec.completions) ? string(self.spec.completions)"
    " : has(self.spec.parallelism) && self.spec.parallelism > 1 ? '1 of ' + string(self.spec.parallelism) : '1')"
)
_IMAGES = "=self.spec.template.spec.containers.map(c, c.image).join(',')"
_CONTAINERS = "=self.spec.template.spec.containers.map(c, c.name).join(',')"


def _pairs(path: str) -> str:
    """Format a map as a=b,c=d."""
    return f"{path}.map(k, k + '=' + {path}[k]).sort()"


_EXPRESSIONS = (
    "self.spec.selector.matchExpressions.map(e, e.operator == 'Exists' ? e.key : e.operator == 'DoesNotExist'"
    " ? '!' + e.key : e.key + (e.operator == 'In' ? ' in (' : ' notin (') + e.values.join(',') + ')')"
)
_SELECTOR = (
    f"=((has(self.spec.selector.matchLabels) ? {_pairs('self.spec.selector.matchLabels')} : [])"
    f" + (has(self.spec.selector.matchExpressions) ? {_EXPRESSIONS} : [])).join(',')"
)
_EVENT_OBJECT = "=self.involvedObject.kind.lowerAscii() + '/' + self.involvedObject.name"
_EVENT_SOURCE = (
    "=(has(self.source) && has(self.source.component) ? self.source.component"
    " : has(self.reportingComponent) ? self.reportingComponent : '')"
    " + (has(self.source) && has(self.source.host) ? ', ' + self.source.host : '')"
)
_TIMED = "has(self.eventTime) && self.eventTime != null ? self.eventTime : null"
_FIRST_SEEN = f"has(self.firstTimestamp) && self.firstTimestamp != null ? self.firstTimestamp : {_TIMED}"
_LAST_SEEN = (
    "=has(self.series) && self.series != null ? self.series.lastObservedTime"
    f" : has(self.lastTimestamp) && self.lastTimestamp != null ? self.lastTimestamp : {_FIRST_SEEN}"
)
_EVENT_COUNT = (
    "=has(self.series) && self.series != null ? self.series.count : has(self.count) && self.count > 0 ? self.count : 1"
)


def _modes(path: str) -> str:
    """Abbreviate access modes by their initials."""
    short = (
        "m == 'ReadWriteOnce' ? 'RWO' : m == 'ReadOnlyMany' ? 'ROX' : m == 'ReadWriteMany' ? 'RWX'"
        " : m == 'ReadWriteOncePod' ? 'RWOP' : m"
    )
    return f"={path}.map(m, {short}).join(',')"


def _count(field: str) -> str:
    """Return a number of status, with 0 as the default."""
    return f"=has(self.status) && has(self.status.{field}) ? self.status.{field} : 0"


def _ready() -> str:
    return (
        "=string(has(self.status) && has(self.status.readyReplicas) ? self.status.readyReplicas : 0)"
        " + '/' + string(has(self.spec.replicas) ? self.spec.replicas : 1)"
    )


_TEMPLATE = (_wide("Containers", _CONTAINERS), _wide("Images", _IMAGES))
_WORKLOAD_WIDE = (*_TEMPLATE, _wide("Selector", _SELECTOR))
_DATA = _number("Data", "=(has(self.data) ? self.data.size() : 0)", declared="string")

#: Keyed by plural.group. The name comes first unless it is among the columns; other kinds show name and age.
COLUMNS: dict[str, tuple[Column, ...]] = {
    "nodes": (
        _text("Status", _READY_NODE),
        _text("Roles", _ROLES, absent=_NONE),
        BUILTIN_AGE,
        _text("Version", ".status.nodeInfo.kubeletVersion"),
        _wide("Internal-IP", ".status.addresses[?(@.type=='InternalIP')].address"),
        _wide("External-IP", ".status.addresses[?(@.type=='ExternalIP')].address"),
        _wide("OS-Image", ".status.nodeInfo.osImage", absent=_UNKNOWN),
        _wide("Kernel-Version", ".status.nodeInfo.kernelVersion", absent=_UNKNOWN),
        _wide("Container-Runtime", ".status.nodeInfo.containerRuntimeVersion", absent=_UNKNOWN),
    ),
    "namespaces": (_text("Status", ".status.phase"), BUILTIN_AGE),
    "pods": (
        _text("Ready", _POD_READY),
        _text("Status", _POD_STATUS),
        _text("Restarts", _RESTARTS),
        BUILTIN_AGE,
        _wide("IP", ".status.podIP"),
        _wide("Node", ".spec.nodeName"),
        _wide("Nominated Node", ".status.nominatedNodeName"),
        _wide("Readiness Gates", "=string(self.spec.readinessGates.size())"),
    ),
    "secrets": (_text("Type", ".type"), _DATA, BUILTIN_AGE),
    "configmaps": (
        replace(_DATA, json_path=f"{_DATA.json_path} + (has(self.binaryData) ? self.binaryData.size() : 0)"),
        BUILTIN_AGE,
    ),
    "events": (
        _date("Last Seen", _LAST_SEEN),
        _text("Type", ".type"),
        _text("Reason", ".reason"),
        _text("Object", _EVENT_OBJECT),
        _wide("Subobject", ".involvedObject.fieldPath", absent=""),
        _wide("Source", _EVENT_SOURCE, absent=""),
        _text("Message", "=self.message.trim()"),
        _date("First Seen", f"={_FIRST_SEEN}", priority=1),
        _number("Count", _EVENT_COUNT, priority=1, declared="string"),
        replace(NAME, priority=1),
    ),
    "deployments.apps": (
        _text("Ready", _ready()),
        _number("Up-to-date", _count("updatedReplicas"), declared="string"),
        _number("Available", _count("availableReplicas"), declared="string"),
        BUILTIN_AGE,
        *_WORKLOAD_WIDE,
    ),
    "jobs.batch": (
        _text("Status", _job_status()),
        _text("Completions", _COMPLETIONS),
        Column(name="Duration", type="duration", json_path=".status", declared="string", absent=""),
        BUILTIN_AGE,
        *_WORKLOAD_WIDE,
    ),
    "customresourcedefinitions.apiextensions.k8s.io": (_CREATED,),
    "clusterroles.rbac.authorization.k8s.io": (_CREATED,),
    "roles.rbac.authorization.k8s.io": (_CREATED,),
}


def columns_of(row: Row) -> tuple[Column, ...]:
    """Return the columns of a built-in kind."""
    return COLUMNS.get(row.resource.name, ())
