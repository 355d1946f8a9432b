"""Services, Events and Leases."""
# ruff: noqa: E501  # what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.exchange import Row, answered, get, invalid, merge, play, post, put, refused, strategic

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

SERVICES = "/api/v1/namespaces/$ns/services"
SERVICE = f"{SERVICES}/one"
EVENTS = "/api/v1/namespaces/$ns/events"
DEFAULT_EVENTS = "/api/v1/namespaces/default/events"
NEW_EVENTS = "/apis/events.k8s.io/v1/namespaces/$ns/events"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/$ns/leases"
LEASE = f"{LEASES}/one"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/$ns/endpointslices"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/$ns/rolebindings"
_META = {"metadata": {"name": "one"}}
_NOW = "2026-01-02T03:04:05.000000Z"
_NEW = {
    "eventTime": _NOW,
    "reportingController": "a.io/b",
    "reportingInstance": "i",
    "action": "Act",
    "reason": "Why",
    "type": "Normal",
    "regarding": {"kind": "Pod", "namespace": "$ns", "name": "p"},
}


def _service(*ports: object, **spec: object) -> dict[str, object]:
    return _META | {"spec": {"ports": list(ports) or [{"port": 80}]} | spec}


def _event(**more: object) -> dict[str, object]:
    return (
        _META
        | {
            "involvedObject": {"kind": "Pod", "namespace": "$ns", "name": "p"},
            "reason": "Why",
            "message": "so",
            "type": "Normal",
        }
        | more
    )


ROWS = [
    Row(
        title="a Service is filled in",
        when=post(SERVICES, _service()),
        look=(
            "spec.ports",
            "spec.type",
            "spec.sessionAffinity",
            "spec.internalTrafficPolicy",
            "spec.ipFamilies",
            "spec.ipFamilyPolicy",
            "status",
        ),
        then=answered(
            201,
            **{
                "spec.ports": [{"protocol": "TCP", "port": 80, "targetPort": 80}],
                "spec.type": "ClusterIP",
                "spec.sessionAffinity": "None",
                "spec.internalTrafficPolicy": "Cluster",
                "spec.ipFamilies": ["IPv4"],
                "spec.ipFamilyPolicy": "SingleStack",
                "status": {"loadBalancer": {}},
            },
        ),
    ),
    Row(
        title="a headless Service has no address",
        when=post(SERVICES, _service(clusterIP="None")),
        look=("spec",),
        then=answered(
            201,
            spec={
                "ports": [{"protocol": "TCP", "port": 80, "targetPort": 80}],
                "clusterIP": "None",
                "clusterIPs": ["None"],
                "type": "ClusterIP",
                "sessionAffinity": "None",
                "ipFamilies": ["IPv4", "IPv6"],
                "ipFamilyPolicy": "RequireDualStack",
                "internalTrafficPolicy": "Cluster",
            },
        ),
    ),
    Row(
        title="a Service that is a name has no address",
        when=post(SERVICES, _META | {"spec": {"type": "ExternalName", "externalName": "a.b"}}),
        look=("spec",),
        then=answered(201, spec={"type": "ExternalName", "sessionAffinity": "None", "externalName": "a.b"}),
    ),
    Row(
        title="a Service without ports is refused",
        when=post(SERVICES, _META | {"spec": {}}),
        then=invalid("Service", ("spec.ports", "Required value")),
    ),
    Row(
        title="a Service without a spec is refused",
        when=post(SERVICES, _META),
        then=invalid("Service", ("spec.ports", "Required value")),
    ),
    Row(
        title="two ports need names",
        when=post(SERVICES, _service({"port": 80}, {"port": 81})),
        then=invalid("Service", ("spec.ports[0].name", "Required value"), ("spec.ports[1].name", "Required value")),
    ),
    Row(
        title="two ports of one name are refused",
        when=post(SERVICES, _service({"name": "a", "port": 80}, {"name": "a", "port": 81})),
        then=invalid("Service", ("spec.ports[1].name", 'Duplicate value: "a"')),
    ),
    Row(
        title="two ports of one number are refused",
        when=post(SERVICES, _service({"name": "a", "port": 80}, {"name": "b", "port": 80})),
        then=invalid("Service", ("spec.ports[1]", "Duplicate value: $value")),
    ),
    Row(
        title="a port out of range is refused",
        when=post(SERVICES, _service({"port": 0}, clusterIP="None")),
        then=invalid(
            "Service",
            ("spec.ports[0].port", "Invalid value: 0: must be between 1 and 65535, inclusive"),
            ("spec.ports[0].targetPort", "Invalid value: 0: must be between 1 and 65535, inclusive"),
        ),
    ),
    Row(
        title="a port with a bad name is refused",
        when=post(SERVICES, _service({"port": 80, "name": "A_b"})),
        then=invalid(
            "Service",
            (
                "spec.ports[0].name",
                "Invalid value: \"A_b\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
            ),
        ),
    ),
    Row(
        title="a port with a bad protocol is refused",
        when=post(SERVICES, _service({"port": 80, "protocol": "ICMP"})),
        then=invalid(
            "Service", ("spec.ports[0].protocol", 'Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"')
        ),
    ),
    Row(
        title="a bad target is refused",
        when=post(SERVICES, _service({"port": 80, "targetPort": "A_b"})),
        then=invalid(
            "Service",
            (
                "spec.ports[0].targetPort",
                'Invalid value: "A_b": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
            ),
        ),
    ),
    Row(
        title="an unknown type of Service is refused",
        when=post(SERVICES, _service(type="Pigeon")),
        then=invalid(
            "Service",
            (
                "spec.type",
                'Unsupported value: "Pigeon": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"',
            ),
        ),
    ),
    Row(
        title="a bad selector is refused",
        when=post(SERVICES, _service(selector={"a": "b c"})),
        then=invalid(
            "Service",
            (
                "spec.selector",
                "Invalid value: \"b c\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
            ),
        ),
    ),
    Row(
        title="the address of a Service does not change",
        given=(post(SERVICES, _service()),),
        when=merge(SERVICE, {"spec": {"clusterIP": "10.0.0.200", "clusterIPs": ["10.0.0.200"]}}),
        then=invalid("Service", ("spec.clusterIPs[0]", 'Invalid value: ["10.0.0.200"]: may not change once set')),
    ),
    Row(
        title="a PUT of a Service may leave its address out",
        given=(post(SERVICES, _service(clusterIP="None")),),
        when=put(SERVICE, _service({"port": 81}, clusterIP="None")),
        look=("spec.ports", "spec.clusterIP"),
        then=answered(
            200, **{"spec.ports": [{"protocol": "TCP", "port": 81, "targetPort": 81}], "spec.clusterIP": "None"}
        ),
    ),
    Row(
        title="an Event is stored",
        when=post(EVENTS, _event()),
        look=(
            "reason",
            "involvedObject",
            "metadata.name",
            "type",
            "firstTimestamp",
            "eventTime",
            "source",
            "reportingComponent",
        ),
        then=answered(
            201,
            **{
                "reason": "Why",
                "involvedObject": {"kind": "Pod", "namespace": "$ns", "name": "p"},
                "metadata.name": "one",
                "type": "Normal",
                "firstTimestamp": None,
                "eventTime": None,
                "source": {},
                "reportingComponent": "",
            },
        ),
    ),
    Row(
        title="an Event in another namespace than its object is refused",
        when=post(EVENTS, _event(involvedObject={"kind": "Pod", "namespace": "other"})),
        then=invalid("Event", ("involvedObject.namespace", 'Invalid value: "other": does not match event.namespace')),
    ),
    Row(
        title="an Event about a cluster-scoped object is in the default namespace",
        when=post(
            DEFAULT_EVENTS, _event(involvedObject={"kind": "Node", "name": "n"}) | {"metadata": {"name": "$word"}}
        ),
        look=("metadata.namespace",),
        then=answered(201, **{"metadata.namespace": "default"}),
    ),
    Row(
        title="an Event about a cluster-scoped object is nowhere else",
        when=post(EVENTS, _event(involvedObject={"kind": "Node", "name": "n"})),
        then=invalid("Event", ("involvedObject.namespace", 'Invalid value: "": does not match event.namespace')),
    ),
    Row(
        title="an Event may have any type",
        when=post(EVENTS, _event(type="Strange")),
        look=("type",),
        then=answered(201, type="Strange"),
    ),
    Row(
        title="an Event with an eventTime needs all the rest",
        when=post(EVENTS, _event(eventTime=_NOW)),
        then=invalid(
            "Event",
            ("action", "Required value"),
            ("reportingComponent", 'Invalid value: "": name part must be non-empty'),
            (
                "reportingComponent",
                "Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ),
            ("reportingComponent", "Required value"),
            ("reportingInstance", "Required value"),
        ),
    ),
    Row(
        title="a name of an Event may be long and dotted",
        when=post(EVENTS, _event() | {"metadata": {"name": "p.18a0b1c2d3e4f5"}}),
        look=("metadata.name",),
        then=answered(201, **{"metadata.name": "p.18a0b1c2d3e4f5"}),
    ),
    Row(
        title="the count of an Event is patched",
        given=(post(EVENTS, _event(count=1)),),
        when=strategic(f"{EVENTS}/one", {"count": 2, "lastTimestamp": "2026-01-02T03:04:05Z", "message": "again"}),
        look=("count", "message", "lastTimestamp"),
        then=answered(200, count=2, message="again", lastTimestamp="$time"),
    ),
    Row(
        title="a new Event is stored",
        when=post(NEW_EVENTS, _META | _NEW),
        look=("reason", "regarding", "note", "reportingController"),
        then=answered(
            201,
            reason="Why",
            regarding={"kind": "Pod", "namespace": "$ns", "name": "p"},
            note="absent",
            reportingController="a.io/b",
        ),
    ),
    Row(
        title="a new Event needs an eventTime",
        when=post(NEW_EVENTS, _META | {key: value for key, value in _NEW.items() if key != "eventTime"}),
        then=invalid("Event", ("eventTime", "Required value")),
    ),
    Row(
        title="a new Event needs its type",
        when=post(NEW_EVENTS, _META | _NEW | {"type": "Strange"}),
        then=invalid("Event", ("type", 'Invalid value: "": has invalid value: Strange')),
    ),
    Row(
        title="a new Event has no count",
        when=post(NEW_EVENTS, _META | _NEW | {"deprecatedCount": 5}),
        then=invalid("Event", ("count", 'Invalid value: "": needs to be unset')),
    ),
    Row(
        title="a new Event does not change",
        given=(post(NEW_EVENTS, _META | _NEW),),
        when=merge(f"{NEW_EVENTS}/one", {"note": "other"}),
        then=invalid("Event", ("message", 'Invalid value: "other": field is immutable')),
    ),
    Row(
        title="the series of a new Event changes",
        given=(post(NEW_EVENTS, _META | _NEW),),
        when=merge(f"{NEW_EVENTS}/one", {"series": {"count": 2, "lastObservedTime": _NOW}}),
        look=("series",),
        then=answered(200, series={"count": 2, "lastObservedTime": "$time"}),
    ),
    Row(
        title="a new Event is read as an old one",
        given=(post(NEW_EVENTS, _META | _NEW | {"note": "so"}),),
        when=get(f"{EVENTS}/one"),
        look=("message", "involvedObject", "reportingComponent", "source"),
        then=answered(
            200,
            message="so",
            involvedObject={"kind": "Pod", "namespace": "$ns", "name": "p"},
            reportingComponent="a.io/b",
            source={},
        ),
    ),
    Row(
        title="a Lease is stored",
        when=post(
            LEASES,
            _META
            | {
                "spec": {
                    "holderIdentity": "me",
                    "leaseDurationSeconds": 15,
                    "acquireTime": _NOW,
                    "renewTime": _NOW,
                    "leaseTransitions": 0,
                }
            },
        ),
        look=("spec",),
        then=answered(
            201,
            spec={
                "holderIdentity": "me",
                "leaseDurationSeconds": 15,
                "acquireTime": "$time",
                "renewTime": "$time",
                "leaseTransitions": 0,
            },
        ),
    ),
    Row(
        title="a Lease of no time is refused",
        when=post(LEASES, _META | {"spec": {"leaseDurationSeconds": 0}}),
        then=invalid(
            "Lease.coordination.k8s.io", ("spec.leaseDurationSeconds", "Invalid value: 0: must be greater than 0")
        ),
    ),
    Row(
        title="a Lease with negative transitions is refused",
        when=post(LEASES, _META | {"spec": {"leaseTransitions": -1}}),
        then=invalid(
            "Lease.coordination.k8s.io",
            ("spec.leaseTransitions", "Invalid value: -1: must be greater than or equal to 0"),
        ),
    ),
    Row(
        title="an old Lease is a conflict",
        given=(post(LEASES, _META), merge(LEASE, {"spec": {"holderIdentity": "me"}})),
        when=put(
            LEASE,
            {
                "metadata": {"name": "one", "resourceVersion": "$0.metadata.resourceVersion"},
                "spec": {"holderIdentity": "you"},
            },
        ),
        then=refused(
            409,
            "Conflict",
            'Operation cannot be fulfilled on leases.coordination.k8s.io "one": the object has been modified; please apply your changes to the latest version and try again',
            {"name": "one", "group": "coordination.k8s.io", "kind": "leases"},
        ),
    ),
    Row(
        title="an EndpointSlice is stored",
        when=post(
            SLICES,
            _META
            | {
                "addressType": "IPv4",
                "endpoints": [{"addresses": ["10.1.1.1"], "conditions": {"ready": True}}],
                "ports": [{"port": 80}],
            },
        ),
        look=("addressType", "endpoints", "ports", "metadata.generation"),
        then=answered(
            201,
            **{
                "addressType": "IPv4",
                "endpoints": [{"addresses": ["10.1.1.1"], "conditions": {"ready": True}}],
                "ports": [{"name": "", "protocol": "TCP", "port": 80}],
                "metadata.generation": 1,
            },
        ),
    ),
    Row(
        title="an EndpointSlice on the loopback is refused",
        when=post(SLICES, _META | {"addressType": "IPv4", "endpoints": [{"addresses": ["127.0.0.1"]}]}),
        then=invalid(
            "EndpointSlice.discovery.k8s.io",
            (
                "endpoints[0].addresses[0]",
                'Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
            ),
        ),
    ),
    Row(
        title="an EndpointSlice needs a type of address",
        when=post(SLICES, _META | {"endpoints": []}),
        then=invalid("EndpointSlice.discovery.k8s.io", ("addressType", "Required value")),
    ),
    Row(
        title="the role of a binding does not change",
        given=(
            post(BINDINGS, _META | {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"}}),
        ),
        when=merge(f"{BINDINGS}/one", {"roleRef": {"name": "b"}}),
        then=invalid(
            "RoleBinding.rbac.authorization.k8s.io",
            (
                "roleRef",
                'Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"b"}: cannot change roleRef',
            ),
        ),
    ),
    Row(
        title="a binding needs its role",
        when=post(BINDINGS, _META | {"roleRef": {}}),
        then=invalid(
            "RoleBinding.rbac.authorization.k8s.io",
            ("roleRef.kind", 'Unsupported value: "": supported values: "Role", "ClusterRole"'),
            ("roleRef.name", "Required value"),
        ),
    ),
    Row(
        title="a binding is filled in",
        when=post(
            BINDINGS,
            _META
            | {
                "roleRef": {"kind": "Role", "name": "a"},
                "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}],
            },
        ),
        look=("roleRef", "subjects"),
        then=answered(
            201,
            roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"},
            subjects=[
                {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "u"},
                {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
            ],
        ),
    ),
    Row(
        title="a Node is filled in",
        when=post(
            "/api/v1/nodes",
            {"metadata": {"name": "$word"}, "spec": {"taints": [{"key": "a.io/b", "effect": "NoExecute"}]}},
        ),
        look=("spec.taints.0.key", "spec.unschedulable"),
        then=answered(201, **{"spec.taints.0.key": "a.io/b", "spec.unschedulable": "absent"}),
    ),
    Row(
        title="a Node is cordoned",
        given=(post("/api/v1/nodes", {"metadata": {"name": "$word"}}),),
        when=merge("/api/v1/nodes/$word", {"spec": {"unschedulable": True}}),
        look=("spec.unschedulable",),
        then=answered(200, **{"spec.unschedulable": True}),
    ),
    Row(
        title="a Node is uncordoned",
        given=(post("/api/v1/nodes", {"metadata": {"name": "$word"}, "spec": {"unschedulable": True}}),),
        when=merge("/api/v1/nodes/$word", {"spec": {"unschedulable": False}}),
        look=("spec.unschedulable",),
        then=answered(200, **{"spec.unschedulable": "absent"}),
    ),
    Row(
        title="a taint with an unknown effect is refused",
        when=post(
            "/api/v1/nodes",
            {"metadata": {"name": "$word"}, "spec": {"taints": [{"key": "a.io/b", "effect": "Sometimes"}]}},
        ),
        then=invalid(
            "Node",
            (
                "metadata.taints[0].effect",
                'Unsupported value: "Sometimes": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
            ),
            name="$ns",
        ),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_write(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
