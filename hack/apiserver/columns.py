"""The printer columns of built-in kinds, as `kubectl get` shows them.

A column's path is JSONPath as in a CustomResourceDefinition, or a CEL expression over `self` after a `=`. Where an
expression has no value, the column's `absent` text is shown.
"""

from __future__ import annotations

from dataclasses import replace

from hack.apiserver.resources import Column

NAME = Column(name="Name", type="string", json_path=".metadata.name", format="name", description="Name of the object")
#: Custom columns have the type date; built-in ones declare the same column as string.
AGE = Column(
    name="Age", type="date", json_path=".metadata.creationTimestamp", description="Time since the object was created"
)
BUILTIN_AGE = replace(AGE, declared="string", absent="<unknown>")
_NONE, _UNKNOWN = "<none>", "<unknown>"


def _text(name: str, path: str, *, priority: int = 0, absent: str = "") -> Column:
    return Column(name=name, type="string", json_path=path, priority=priority, absent=absent)


def _wide(name: str, path: str, *, absent: str = _NONE) -> Column:
    return _text(name, path, priority=1, absent=absent)


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
_DATA = Column(name="Data", type="integer", json_path="=(has(self.data) ? self.data.size() : 0)", declared="string")

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
    "jobs.batch": (
        _text("Status", _job_status()),
        _text("Completions", _COMPLETIONS),
        Column(name="Duration", type="duration", json_path=".status", declared="string", absent=""),
        BUILTIN_AGE,
    ),
}
