"""Rules for Services and EndpointSlices."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Any

from hack.apiserver.schema.field_error import FieldError, duplicate, invalid, not_supported, required
from hack.apiserver.schema.names import dns_label
from hack.apiserver.schema.object_meta import validate_labels

if TYPE_CHECKING:
    from collections.abc import Iterator

Object = dict[str, Any]

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_HIGHEST_PORT = 65535


def service(new: Object, old: Object | None) -> Iterator[FieldError]:
    """Findings about a Service."""
    spec = new.get("spec") or {}
    if old is not None:
        yield from _address_kept(spec, old.get("spec") or {})
    ports = spec.get("ports") or []
    if not ports and spec.get("clusterIP") != "None" and spec.get("type") != "ExternalName":
        yield required("spec.ports")
    for index, port in enumerate(ports):
        yield from _port(port, f"spec.ports[{index}]", ports[:index], alone=len(ports) == 1)
    yield from validate_labels(spec.get("selector") or {}, "spec.selector")
    if spec.get("type") not in _TYPES:
        yield not_supported("spec.type", spec.get("type"), _TYPES)


def _address_kept(spec: Object, old: Object) -> Iterator[FieldError]:
    before, now = old.get("clusterIPs") or [], spec.get("clusterIPs") or []
    lasting = "ExternalName" not in {spec.get("type"), old.get("type")}
    if lasting and before and before[:1] != now[:1]:
        yield invalid("spec.clusterIPs[0]", now, "may not change once set")


def _port(port: Object, field: str, before: list[Object], *, alone: bool) -> Iterator[FieldError]:
    name, number = port.get("name") or "", port.get("port", 0)
    if not name and not alone:
        yield required(f"{field}.name")
    elif name:
        yield from (invalid(f"{field}.name", name, fault) for fault in dns_label(name))
        if name in [other.get("name") for other in before]:
            yield duplicate(f"{field}.name", name)
    yield from port_number(number, f"{field}.port")
    if port.get("protocol") not in _PROTOCOLS:
        yield not_supported(f"{field}.protocol", port.get("protocol"), _PROTOCOLS)
    target = port.get("targetPort")
    if isinstance(target, str):
        yield from _port_name(target, f"{field}.targetPort")
    else:
        yield from port_number(target or 0, f"{field}.targetPort")
    if (number, port.get("protocol")) in [(other.get("port", 0), other.get("protocol")) for other in before]:
        shown = {"Name": "", "Protocol": port.get("protocol"), "AppProtocol": None, "Port": number}
        yield duplicate(field, shown | {"TargetPort": 0, "NodePort": 0})


def port_number(number: int, field: str) -> Iterator[FieldError]:
    """Findings about a number that must be a port's."""
    if not 1 <= number <= _HIGHEST_PORT:
        yield invalid(field, number, f"must be between 1 and {_HIGHEST_PORT}, inclusive")


def _port_name(name: str, field: str) -> Iterator[FieldError]:
    if not re.fullmatch("[-a-z0-9]+", name):
        yield invalid(field, name, "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    elif not re.search("[a-z]", name):
        yield invalid(field, name, "must contain at least one letter (a-z)")


def endpoint_slice(new: Object, old: Object | None) -> Iterator[FieldError]:
    """Findings about an EndpointSlice."""
    kind = new.get("addressType") or ""
    if not kind:
        yield required("addressType")
    elif old is not None and kind != old.get("addressType"):
        yield invalid("addressType", kind, "field is immutable")
    for index, endpoint in enumerate(new.get("endpoints") or ()):
        for place, address in enumerate(endpoint.get("addresses") or ()):
            field = f"endpoints[{index}].addresses[{place}]"
            if kind in {"IPv4", "IPv6"} and _is_loopback(address):
                yield invalid(field, address, "may not be in the loopback range (127.0.0.0/8, ::1/128)")


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
