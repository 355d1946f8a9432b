"""VirtualMachineInstances for tests of the rule for live migration."""

from __future__ import annotations

from typing import Any

from tests.support.cluster.cluster_reader import named
from upgrade_manager.kube.objects import Object

WITNESS: dict[str, Any] = {"node-role.harvesterhci.io/witness": "true"}
OWNER = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "db", "uid": "uid-of-db"}
GPU = {"name": "gpu", "deviceName": "nvidia.com/GA102GL"}


def instance(spec: Any = None, *, on: Any = "n1", phase: str = "Running", **devices: Any) -> Object:
    """Return the instance default/db, with these devices."""
    spec = {"domain": {"devices": devices}, **(spec or {})}
    found = named("db", "default", spec=spec, status={"nodeName": on, "phase": phase})
    found["metadata"]["ownerReferences"] = [OWNER]
    return found


def affinity(*terms: Any) -> Object:
    """Return the required node affinity with these terms, as a part of an instance's spec."""
    required = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def zone(name: str) -> Object:
    """Return the term that nodes with this label meet."""
    return {"matchExpressions": [{"key": "zone", "operator": "In", "values": [name]}]}
