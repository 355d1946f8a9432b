"""Services and EndpointSlices: what is filled in, what is refused."""
# ruff: noqa: E501  # what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.api_calls import Row, answered, invalid, merge, play, post, put

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

SERVICES = "/api/v1/namespaces/$ns/services"
SERVICE = f"{SERVICES}/one"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/$ns/endpointslices"
_META = {"metadata": {"name": "one"}}


def _service(*ports: object, **spec: object) -> dict[str, object]:
    return _META | {"spec": {"ports": list(ports) or [{"port": 80}]} | spec}


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
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_service(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
