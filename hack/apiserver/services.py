"""Addresses of Services: nothing listens there, but they are there."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from upgrade_manager.kube.resources import SERVICES

if TYPE_CHECKING:
    from hack.apiserver.admission import Object, Operation, WriteOptions
    from hack.apiserver.resources import Row

#: What the server allocates and a later update may leave out.
_ALLOCATED = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


def service_stage(row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions) -> Object:
    """Give a Service its address, from its name, so that the same run has the same addresses; a mutating stage."""
    _ = (operation, options)
    spec = new.get("spec")
    if row.resource.name != SERVICES.name or not isinstance(spec, dict) or spec.get("type") == "ExternalName":
        return new
    known = (old or {}).get("spec", {})
    address = spec.get("clusterIP") or known.get("clusterIP") or _address(new)
    # What has neither an address nor Pods might be reached in either family.
    both = address == "None" and not spec.get("selector")
    allocated = {
        "clusterIP": address,
        "clusterIPs": [address],
        "ipFamilies": ["IPv4", "IPv6"] if both else ["IPv4"],
        "ipFamilyPolicy": "RequireDualStack" if both else "SingleStack",
    }
    return new | {"spec": spec | {field: spec.get(field) or allocated[field] for field in _ALLOCATED}}


def _address(service: Object) -> str:
    metadata = service["metadata"]
    number = zlib.crc32(f"{metadata.get('namespace', '')}/{metadata.get('name', '')}".encode())
    return f"10.53.{number >> 8 & 0xFF}.{number & 0xFF}"
