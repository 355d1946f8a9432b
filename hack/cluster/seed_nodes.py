"""The nodes of a new cluster, with their Machines and machine-plan Secrets."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from hack.actors import machine_plan as plans
from hack.actors.hosts import Host
from hack.actors.machines import node_info
from upgrade_manager.api.keys import (
    ANNOTATION_MACHINE,
    FLEET_LOCAL,
    LABEL_ARCH,
    LABEL_CONTROL_PLANE,
    LABEL_ETCD,
    LABEL_HOSTNAME,
    MACHINE_PLAN_SECRET_TYPE,
    MANAGED_LABEL,
    RKE_CLUSTER_NAME,
    RKE_MACHINE_NAME,
    WITNESS_LABEL,
)
from upgrade_manager.api.names import safe_concat_name

if TYPE_CHECKING:
    from hack.scenario import Scenario
    from upgrade_manager.kube.objects import Object

_CLUSTER = "local"


def machine_name(node: str) -> str:
    """Return the Machine's name, which is independent of the node's name and sorts differently."""
    return f"custom-{hashlib.sha256(node.encode()).hexdigest()[:12]}"


def node(name: str, scenario: Scenario, *, at: str) -> Object:
    """Build a Ready node."""
    nodes = scenario.nodes
    index = nodes.index(name)
    size = {"cpu": "16", "memory": "64Gi", "pods": "200"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": _labels(name, scenario), "annotations": _annotations(name, index)},
        "spec": _spec(name, scenario),
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": _address(index)},
                {"type": "Hostname", "address": name},
            ],
            "capacity": size,
            "allocatable": size,
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "conditions": [_ready(at)],
            "nodeInfo": _system(Host(name, scenario.software.os, scenario.software.kubernetes)),
        },
    }


def _ready(at: str) -> Object:
    return {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
        "lastTransitionTime": at,
    }


def _system(host: Host) -> Object:
    """Build status.nodeInfo."""
    return {
        "architecture": "amd64",
        "bootID": host.boot_id,
        "containerRuntimeVersion": "containerd://2.1.5-k3s1",
        "kernelVersion": "6.4.0-150700.53.25-default",
        "kubeProxyVersion": host.kubelet,
        "kubeletVersion": host.kubelet,
        "machineID": host.machine_id,
        "operatingSystem": "linux",
        "osImage": host.os_image,
        "systemUUID": host.machine_id,
    }


def machine(name: str, scenario: Scenario, node_object: Object, *, at: str) -> Object:
    """Build the Machine of an existing node."""
    called = machine_name(name)
    reference = {"kind": "RKEBootstrap", "apiVersion": "rke.cattle.io/v1", "name": called, "namespace": FLEET_LOCAL}
    labels = {"cluster.x-k8s.io/cluster-name": _CLUSTER, RKE_CLUSTER_NAME: _CLUSTER, **_roles(name, scenario)}
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta1",
        "kind": "Machine",
        "metadata": {"name": called, "namespace": FLEET_LOCAL, "labels": labels},
        "spec": {
            "clusterName": _CLUSTER,
            "bootstrap": {"configRef": reference},
            "infrastructureRef": {**reference, "kind": "CustomMachine"},
        },
        "status": {
            "phase": "Running",
            "nodeRef": {
                "apiVersion": "v1",
                "kind": "Node",
                "name": name,
                "uid": node_object["metadata"]["uid"],
            },
            "nodeInfo": node_info(node_object),
            "infrastructureReady": True,
            "bootstrapReady": True,
            "conditions": [{"type": "Reconciled", "status": "True", "lastTransitionTime": at}],
        },
    }


def plan_secret(name: str, scenario: Scenario, cluster: Object, machine_object: Object) -> Object:
    """Build the machine-plan Secret of a machine that has applied its plan."""
    plan = plans.plan_of(cluster, machine_object)
    content: dict[str, bytes | str] = {
        "plan": plan,
        "appliedPlan": plan,
        "applied-checksum": hashlib.sha256(plan).hexdigest(),
        "success-count": "1",
        "failure-threshold": "-1",
        "max-failures": "-1",
    }
    labels = {
        RKE_MACHINE_NAME: machine_name(name),
        RKE_CLUSTER_NAME: _CLUSTER,
        "resources.cattle.io/backup": "true",
        **_roles(name, scenario),
    }
    if name == scenario.nodes.names[0]:
        labels[plans.INIT_NODE] = "true"
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": MACHINE_PLAN_SECRET_TYPE,
        "metadata": {
            "name": safe_concat_name(machine_name(name), "machine", "plan"),
            "namespace": FLEET_LOCAL,
            "labels": labels,
            "annotations": {"rke.cattle.io/plan-probes-passed": "true"},
        },
        "data": {key: plans.encoded(value) for key, value in content.items()},
    }


def _roles(name: str, scenario: Scenario) -> dict[str, str]:
    if scenario.nodes.is_witness(name):
        roles = [plans.ETCD_ROLE]
    elif scenario.nodes.is_management(name):
        roles = [plans.CONTROL_PLANE_ROLE, plans.ETCD_ROLE, plans.WORKER_ROLE]
    else:
        roles = [plans.WORKER_ROLE]
    return dict.fromkeys(roles, "true")


def _labels(name: str, scenario: Scenario) -> dict[str, str]:
    nodes = scenario.nodes
    labels = {
        LABEL_HOSTNAME: name,
        LABEL_ARCH: "amd64",
        "kubernetes.io/os": "linux",
        MANAGED_LABEL: "true",
        "kubevirt.io/schedulable": "true",
    }
    if nodes.is_witness(name):
        return labels | {LABEL_ETCD: "true", WITNESS_LABEL: "true"}
    if nodes.is_management(name):
        return labels | {LABEL_ETCD: "true", LABEL_CONTROL_PLANE: "true"}
    return labels


def _spec(name: str, scenario: Scenario) -> Object:
    """Build the node's spec; a witness runs etcd and has its taint."""
    cordoned = {"unschedulable": True} if name in scenario.nodes.cordoned else {}
    taint = {"key": LABEL_ETCD, "value": "true", "effect": "NoExecute"}
    return cordoned | ({"taints": [taint]} if scenario.nodes.is_witness(name) else {})


def _annotations(name: str, index: int) -> dict[str, str]:
    return {
        ANNOTATION_MACHINE: machine_name(name),
        "cluster.x-k8s.io/cluster-name": _CLUSTER,
        "cluster.x-k8s.io/cluster-namespace": FLEET_LOCAL,
        "rke2.io/internal-ip": _address(index),
    }


def _address(index: int) -> str:
    return f"10.0.{index // 250}.{index % 250 + 1}"
