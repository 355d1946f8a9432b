"""Rancher's machine plans and drain options, as far as the drain protocol depends on them."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from functools import lru_cache
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import FLEET_LOCAL, RKE_MACHINE_NAME
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Store

DRAIN_OPTIONS = "rke.cattle.io/drain-options"
DRAIN_DONE = "rke.cattle.io/drain-done"
PRE_DRAIN = "rke.cattle.io/pre-drain"
POST_DRAIN = "rke.cattle.io/post-drain"
UNCORDON = "rke.cattle.io/uncordon"
#: A machine with one of these annotations is unavailable; drain-done alone does not count.
BUSY = (PRE_DRAIN, POST_DRAIN, DRAIN_OPTIONS, UNCORDON)
#: The annotations that one update removes at the end, besides the hooks' own.
ALL = (PRE_DRAIN, POST_DRAIN, DRAIN_OPTIONS, DRAIN_DONE, UNCORDON)

INIT_NODE = "rke.cattle.io/init-node"
ETCD_ROLE = "rke.cattle.io/etcd-role"
CONTROL_PLANE_ROLE = "rke.cattle.io/control-plane-role"

_INSTALLER = "rancher/system-agent-installer-rke2"
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


def plan_of(cluster: Object, machine: Object) -> bytes:
    """Return the plan that a machine should have: its RKE2 version, and the hash that decides about drains."""
    spec = objects.spec(cluster)
    version = spec.get("kubernetesVersion") or ""
    generation = (spec.get("rkeConfig") or {}).get("provisionGeneration") or 0
    image = f"{_INSTALLER}:{version.replace('+', '-')}"
    files = [{"path": "/etc/rancher/rke2/config.yaml.d/50-rancher.yaml", "content": _config(machine)}]
    digest = hashlib.sha256(json.dumps([generation, image, files]).encode()).hexdigest()
    install = {
        "name": "install",
        "image": image,
        "command": "sh",
        "args": ["-c", "run.sh"],
        "env": [f"RESTART_STAMP={digest}", f"DRAIN_HASH={digest}", "INSTALL_RKE2_EXEC=server"],
    }
    return json.dumps({"files": files, "instructions": [install]}, sort_keys=True, separators=(",", ":")).encode()


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


def is_in_sync(secret: Object) -> bool:
    """Report whether the machine has applied its plan."""
    return data(secret, "plan") == data(secret, "appliedPlan")


def is_busy(secret: Object) -> bool:
    """Report whether a drain of the machine is in progress."""
    annotations = objects.annotations_of(secret)
    return not is_in_sync(secret) or any(annotations.get(key) for key in BUSY)


def _config(machine: Object) -> str:
    roles = sorted(key for key in objects.labels(machine) if key.endswith("-role"))
    return json.dumps({"node-label": [f"rke.cattle.io/machine={objects.uid(machine)}"], "roles": roles})
