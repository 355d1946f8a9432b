"""The nodes of a new cluster, with their Machines and machine-plan Secrets."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from hack.actors import machine_plan as plans
from hack.actors.hosts import Host
from hack.actors.machines import node_info
from hack.actors.system_agent import probes
from hack.cluster.templates import build
from upgrade_manager.api.keys import LABEL_ETCD
from upgrade_manager.api.names import safe_concat_name
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from hack.scenario import Scenario
    from upgrade_manager.kube.objects import Object

#: The value of a label or annotation that is set.
_SET = "true"


def machine_name(node: str) -> str:
    """Return the Machine's name, which is independent of the node's name and sorts differently."""
    return f"custom-{hashlib.sha256(node.encode()).hexdigest()[:12]}"


def secret_name(node: str) -> str:
    """Return the name of the node's machine-plan Secret."""
    return safe_concat_name(machine_name(node), "machine", "plan")


def node(name: str, scenario: Scenario, *, at: str) -> Object:
    """Build a Ready node; a witness runs etcd and has its taint."""
    nodes = scenario.nodes
    host = Host(name, scenario.software.os, scenario.software.kubernetes)
    is_witness, is_management = nodes.is_witness(name), nodes.is_management(name)
    return build(
        "node",
        name=name,
        etcd=_SET if is_witness or is_management else None,
        control_plane=_SET if is_management and not is_witness else None,
        witness=_SET if is_witness else None,
        machine=machine_name(name),
        address=_address(nodes.index(name)),
        unschedulable=True if name in nodes.cordoned else None,
        taints=[{"key": LABEL_ETCD, "value": "true", "effect": "NoExecute"}] if is_witness else None,
        at=at,
        boot_id=host.boot_id,
        machine_id=host.machine_id,
        kubelet=host.kubelet,
        os_image=host.os_image,
    )


def machine(name: str, scenario: Scenario, node_object: Object, *, at: str) -> Object:
    """Build the Machine of an existing node."""
    return build(
        "machine",
        name=machine_name(name),
        **_roles(name, scenario),
        node=name,
        node_uid=objects.uid(node_object),
        node_info=node_info(node_object),
        at=at,
    )


def plan_secret(name: str, scenario: Scenario, cluster: Object, machine_object: Object) -> Object:
    """Build the machine-plan Secret of a machine that has applied its plan."""
    plan = plans.Plans(cluster).of(machine_object)
    content: dict[str, bytes | str] = {
        "plan": plan,
        "appliedPlan": plan,
        "applied-checksum": hashlib.sha256(plan).hexdigest(),
        "success-count": "1",
        "failure-threshold": "1",
        "max-failures": "-1",
        "probe-statuses": probes(healthy=True),
    }
    return build(
        "plan_secret",
        name=secret_name(name),
        machine=machine_name(name),
        **_roles(name, scenario),
        init_node=_SET if name == scenario.nodes.names[0] else None,
        data={key: plans.encoded(value) for key, value in content.items()},
    )


def _roles(name: str, scenario: Scenario) -> dict[str, str | None]:
    """Return the values of the labels that Rancher gives a machine for its roles."""
    is_witness, is_management = scenario.nodes.is_witness(name), scenario.nodes.is_management(name)
    return {
        "control_plane": _SET if is_management and not is_witness else None,
        "etcd": _SET if is_management or is_witness else None,
        "worker": None if is_witness else _SET,
    }


def _address(index: int) -> str:
    return f"10.0.{index // 250}.{index % 250 + 1}"
