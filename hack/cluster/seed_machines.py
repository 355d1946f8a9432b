"""The virtual machines of a new cluster, with their instances and Longhorn volumes."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from hack.actors.longhorn import replica_name
from hack.scenario import Machine
from upgrade_manager.api.keys import LONGHORN_SYSTEM

if TYPE_CHECKING:
    from hack.scenario import Scenario
    from upgrade_manager.kube.objects import Object

_VOLUME_LABEL = "longhornvolume"
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
    devices: Object = {"disks": [{"name": "disk-0", "disk": {"bus": "virtio"}, "bootOrder": 1}]}
    if not machine.migratable:
        devices["hostDevices"] = [{"name": "gpu-0", "deviceName": "nvidia.com/GA102GL"}]
    spec: Object = {"evictionStrategy": "LiveMigrateIfPossible", "domain": {"cpu": {"cores": 2}, "devices": devices}}
    if machine.volume:
        spec["volumes"] = [{"name": "disk-0", "persistentVolumeClaim": {"claimName": claim_name(machine)}}]
    labels = {"harvesterhci.io/vmName": machine.name}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": machine.name, "namespace": machine.namespace, "labels": labels},
        "spec": {
            "runStrategy": machine.run_strategy,
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
        "status": {"printableStatus": "Running", "ready": True, "created": True},
    }


def claim_name(machine: Machine) -> str:
    """Return the name of the VM's only disk."""
    return f"{machine.name}-disk-0"


def volume_name(machine: Machine) -> str:
    """Return the volume's name, as a provisioner forms it."""
    return f"pvc-{uuid.uuid5(_NAMESPACE, f'{machine.namespace}/{machine.name}')}"


def volume(machine: Machine, *, at: str) -> Object:
    """Build the Longhorn volume, attached to the VM's node."""
    name = volume_name(machine)
    user = {"podName": "", "podStatus": "", "workloadName": machine.name, "workloadType": "VirtualMachineInstance"}
    return {
        "apiVersion": "longhorn.io/v1beta2",
        "kind": "Volume",
        "metadata": {"name": name, "namespace": LONGHORN_SYSTEM, "labels": {_VOLUME_LABEL: name}},
        "spec": {
            "size": "10737418240",
            "numberOfReplicas": machine.replicas,
            "accessMode": "rwx",
            "migratable": True,
            "dataEngine": "v1",
            "nodeID": machine.node,
        },
        "status": {
            "state": "attached",
            "robustness": "healthy",
            "currentNodeID": machine.node,
            "conditions": [{"type": "Scheduled", "status": "True", "lastTransitionTime": at}],
            "kubernetesStatus": {
                "namespace": machine.namespace,
                "pvcName": claim_name(machine),
                "pvName": name,
                "pvStatus": "Bound",
                "lastPVCRefAt": "",
                "workloadsStatus": [user],
            },
        },
    }


def engine(machine: Machine, scenario: Scenario) -> Object:
    """Build the volume's engine, with replicas on the VM's node and the following ones."""
    name = volume_name(machine)
    return {
        "apiVersion": "longhorn.io/v1beta2",
        "kind": "Engine",
        "metadata": {"name": f"{name}-e-0", "namespace": LONGHORN_SYSTEM, "labels": {_VOLUME_LABEL: name}},
        "spec": {"volumeName": name, "nodeID": machine.node},
        "status": {
            "currentState": "running",
            "replicaModeMap": {replica_name(name, holder): "RW" for holder in _holders(machine, scenario)},
        },
    }


def replicas(machine: Machine, scenario: Scenario) -> list[Object]:
    """Build the volume's replicas, which Longhorn labels with the volume and the node."""
    name = volume_name(machine)
    return [
        {
            "apiVersion": "longhorn.io/v1beta2",
            "kind": "Replica",
            "metadata": {
                "name": replica_name(name, holder),
                "namespace": LONGHORN_SYSTEM,
                "labels": {_VOLUME_LABEL: name, "longhornnode": holder},
            },
            "spec": {"volumeName": name, "nodeID": holder},
            "status": {"currentState": "running"},
        }
        for holder in _holders(machine, scenario)
    ]


def _holders(machine: Machine, scenario: Scenario) -> list[str]:
    nodes = scenario.nodes.for_machines
    first = nodes.index(machine.node)
    return [nodes[(first + step) % len(nodes)] for step in range(min(machine.replicas, len(nodes)))]
