"""Rancher's machine plans and drain options, as far as the drain protocol depends on them.

The planner writes the plans, and machine_state.py reads what the planner decides by. The rules are those of
rancher/rancher v2.14.0, pkg/capr/planner.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from functools import lru_cache
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import FLEET_LOCAL, MACHINE_PLAN_SECRET_TYPE, RKE_MACHINE_NAME
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Store

SECRET_SELECTOR = f"type={MACHINE_PLAN_SECRET_TYPE}"

DRAIN_OPTIONS = "rke.cattle.io/drain-options"
DRAIN_DONE = "rke.cattle.io/drain-done"
PRE_DRAIN = "rke.cattle.io/pre-drain"
POST_DRAIN = "rke.cattle.io/post-drain"
UNCORDON = "rke.cattle.io/uncordon"
DRAIN_ERROR = "rke.cattle.io/drain-error"
PROBES_PASSED = "rke.cattle.io/plan-probes-passed"
#: The annotations that one update removes at the end, besides the hooks' own (machinedrain.go).
ALL = (PRE_DRAIN, POST_DRAIN, DRAIN_OPTIONS, DRAIN_DONE, UNCORDON)

INIT_NODE = "rke.cattle.io/init-node"
ETCD_ROLE = "rke.cattle.io/etcd-role"
CONTROL_PLANE_ROLE = "rke.cattle.io/control-plane-role"

_INSTALLER = "rancher/system-agent-installer-rke2"
_SPEC_FILE = "/var/lib/rancher/rke2/server/manifests/rancher/rke2-etcd-snapshot-extra-metadata.yaml"
#: Options that are always present, with Go's zero values; others are present when set (Rancher 2.12 and later).
_ALWAYS = {
    "deleteEmptyDirData": False,
    "disableEviction": False,
    "enabled": False,
    "force": False,
    "gracePeriod": 0,
    "skipWaitForDeleteTimeoutSeconds": 0,
    "timeout": 0,
}
_WHEN_SET = ("ignoreDaemonSets", "ignoreErrors", "postDrainHooks", "preDrainHooks")


def node_name(secret: Object, machines: Store) -> str:
    """Return the name of the node of a machine-plan Secret, or an empty string."""
    machine = machines.get(objects.labels(secret).get(RKE_MACHINE_NAME) or "", FLEET_LOCAL)
    return (objects.status(machine or {}).get("nodeRef") or {}).get("name") or ""


def drain_text(options: Object | None, *, single: bool) -> str:
    """Return the value of all drain annotations; a cluster of a single machine evicts nothing."""
    given = options or {}
    chosen = {key: given.get(key, default) for key, default in _ALWAYS.items()}
    chosen |= {key: given[key] for key in _WHEN_SET if given.get(key) not in (None, [])}
    if not chosen.get("ignoreErrors", True):
        del chosen["ignoreErrors"]
    if single:
        chosen["enabled"] = False
    return json.dumps(chosen, sort_keys=True, separators=(",", ":"))


def hooks(text: str, when: str) -> list[str]:
    """Return the annotations that must equal the text: `when` is preDrainHooks or postDrainHooks."""
    listed = json.loads(text).get(when) or ()
    return [hook["annotation"] for hook in listed if hook.get("annotation")]


def needs_drain(text: str) -> bool:
    """Report whether the drain options require any step before or after the plan."""
    options = json.loads(text)
    return bool(options["enabled"] or options.get("preDrainHooks") or options.get("postDrainHooks"))


def concurrency(text: str | None, members: int) -> int:
    """Return how many machines may be unavailable at once; 0 means no limit."""
    if not text:
        return 1
    if text.endswith("%"):
        return max(1, math.ceil(members * int(text[:-1]) / 100))
    return int(text)


class Plans:
    """The plans that the machines of one generation of the Cluster should have; each is rendered once."""

    def __init__(self, cluster: Object) -> None:
        spec = objects.spec(cluster)
        config = spec.get("rkeConfig") or {}
        version = spec.get("kubernetesVersion") or ""
        self._image = f"{_INSTALLER}:{version.replace('+', '-')}"
        self._generation = config.get("provisionGeneration") or 0
        self._registries = json.dumps(config.get("registries") or {}, sort_keys=True)
        #: A digest stands for the compressed spec, which control planes keep beside their etcd snapshots.
        self._spec = hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()
        self._rendered: dict[str, bytes] = {}

    def of(self, machine: Object) -> bytes:
        """Return the plan that the machine should have."""
        name = objects.name(machine)
        if name not in self._rendered:
            self._rendered[name] = self._render(machine)
        return self._rendered[name]

    def _render(self, machine: Object) -> bytes:
        """Render the files, and the instruction with the hash that decides about restarts and drains.

        The hash covers generation, image and all files that are not dynamic (addInstallInstructionWithRestartStamp in
        instructions.go); the spec's file is dynamic and minor, and only control planes have it (manifests.go).
        """
        files: list[Object] = [
            {"path": "/etc/rancher/rke2/config.yaml.d/50-rancher.yaml", "content": _config(machine)},
            {"path": "/etc/rancher/rke2/registries.yaml", "content": self._registries},
        ]
        digest = hashlib.sha256(json.dumps([self._generation, self._image, files]).encode()).hexdigest()
        if objects.labels(machine).get(CONTROL_PLANE_ROLE) == "true":
            files.append({"path": _SPEC_FILE, "content": self._spec, "dynamic": True, "minor": True})
        install = {
            "name": "install",
            "image": self._image,
            "command": "sh",
            "args": ["-c", "run.sh"],
            "env": [f"RESTART_STAMP={digest}", f"DRAIN_HASH={digest}", "INSTALL_RKE2_EXEC=server"],
        }
        plan = {"files": files, "instructions": [install]}
        return json.dumps(plan, sort_keys=True, separators=(",", ":")).encode()


@lru_cache(maxsize=4096)
def major_part(plan: bytes) -> str:
    """Return a plan without its minor files: plans that are equal in it differ in minor files only."""
    content = json.loads(plan) if plan else {}
    files = [file for file in content.get("files") or () if not file.get("minor")]
    return json.dumps({**content, "files": files}, sort_keys=True)


def needs_drain_between(applied: bytes, wanted: bytes) -> bool:
    """Report whether a machine is drained before it gets the plan.

    Since Rancher 2.12 the DRAIN_HASH decides, and a machine whose applied plan has none is not drained.
    """
    before = drain_hash(applied)
    return bool(before) and before != drain_hash(wanted)


@lru_cache(maxsize=4096)
def drain_hash(plan: bytes) -> str:
    """Return the DRAIN_HASH of a plan, or an empty string."""
    if not plan:
        return ""
    for instruction in json.loads(plan).get("instructions") or ():
        for entry in instruction.get("env") or ():
            name, _, value = entry.partition("=")
            if name == "DRAIN_HASH":
                return str(value)
    return ""


def kubernetes_of(plan: bytes) -> str:
    """Return the Kubernetes version that a plan installs."""
    image = json.loads(plan)["instructions"][0]["image"]
    return str(image).rpartition(":")[2].replace("-rke2", "+rke2")


def data(secret: Object, key: str) -> bytes:
    """Return one decoded entry of a Secret, or empty bytes."""
    return base64.b64decode((secret.get("data") or {}).get(key) or "")


def encoded(content: bytes | str) -> str:
    """Encode content for a Secret."""
    return base64.b64encode(content.encode() if isinstance(content, str) else content).decode()


def _config(machine: Object) -> str:
    roles = sorted(key for key in objects.labels(machine) if key.endswith("-role"))
    return json.dumps({"node-label": [f"rke.cattle.io/machine={objects.uid(machine)}"], "roles": roles})
