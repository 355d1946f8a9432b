"""The virtual machines of a new cluster, with their instances and Longhorn volumes."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from hack.actors.longhorn import replica_name
from hack.cluster.templates import build
from hack.scenario import Machine

if TYPE_CHECKING:
    from hack.scenario import Scenario
    from upgrade_manager.kube.objects import Object

_NAMESPACE = uuid.UUID("0b0e5ad6-3b5b-4a55-8a53-52b2f2b4c0de")


def machines_of(scenario: Scenario) -> list[Machine]:
    """Return the scenario's VMs and its fleet, spread over the nodes that are not witnesses."""
    nodes = scenario.nodes.for_machines
    replicas = min(3, len(nodes))
    spread = [
        Machine(name=f"vm-{index}", node=nodes[index % len(nodes)], replicas=replicas)
        for index in range(scenario.vms.count)
    ]
    return [*spread, *scenario.vms.machines]


def virtual_machine(machine: Machine) -> Object:
    """Build the VirtualMachine as a user creates it."""
    return build(
        "virtual_machine",
        name=machine.name,
        namespace=machine.namespace,
        run_strategy=machine.run_strategy,
        host_devices=None if machine.migratable else [{"name": "gpu-0", "deviceName": "nvidia.com/GA102GL"}],
        volumes=[{"name": "disk-0", "persistentVolumeClaim": {"claimName": claim_name(machine)}}]
        if machine.volume
        else None,
    )


def claim_name(machine: Machine) -> str:
    """Return the name of the VM's only disk."""
    return f"{machine.name}-disk-0"


def volume_name(machine: Machine) -> str:
    """Return the volume's name, as a provisioner forms it."""
    return f"pvc-{uuid.uuid5(_NAMESPACE, f'{machine.namespace}/{machine.name}')}"


def volume(machine: Machine, *, at: str) -> Object:
    """Build the Longhorn volume, attached to the VM's node."""
    return build(
        "volume",
        name=volume_name(machine),
        replicas=machine.replicas,
        node=machine.node,
        at=at,
        namespace=machine.namespace,
        claim=claim_name(machine),
        machine=machine.name,
    )


def engine(machine: Machine, scenario: Scenario) -> Object:
    """Build the volume's engine, with replicas on the VM's node and the following ones."""
    name = volume_name(machine)
    modes = {replica_name(name, holder): "RW" for holder in _holders(machine, scenario)}
    return build("engine", volume=name, node=machine.node, replica_modes=modes)


def replicas(machine: Machine, scenario: Scenario) -> list[Object]:
    """Build the volume's replicas."""
    volume = volume_name(machine)
    return [
        build("replica", name=replica_name(volume, holder), volume=volume, node=holder)
        for holder in _holders(machine, scenario)
    ]


def _holders(machine: Machine, scenario: Scenario) -> list[str]:
    nodes = scenario.nodes.for_machines
    first = nodes.index(machine.node)
    return [nodes[(first + step) % len(nodes)] for step in range(min(machine.replicas, len(nodes)))]
