"""Rancher's machine plans and drain options, as far as the drain protocol depends on them (external-apis.md 3)."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from functools import lru_cache
from typing import TYPE_CHECKING

from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

DRAIN_OPTIONS = "rke.cattle.io/drain-options"
DRAIN_DONE = "rke.cattle.io/drain-done"
PRE_DRAIN = "rke.cattle.io/pre-drain"
POST_DRAIN = "rke.cattle.io/post-drain"
UNCORDON = "rke.cattle.io/uncordon"
#: Whoever carries one of these is unavailable; drain-done alone does not count.
BUSY = (PRE_DRAIN, POST_DRAIN, DRAIN_OPTIONS, UNCORDON)
#: What one update takes away at the end, besides the hooks' own annotations.
ALL = (PRE_DRAIN, POST_DRAIN, DRAIN_OPTIONS, DRAIN_DONE, UNCORDON)

INIT_NODE = "rke.cattle.io/init-node"
ETCD_ROLE = "rke.cattle.io/etcd-role"
CONTROL_PLANE_ROLE = "rke.cattle.io/control-plane-role"
WORKER_ROLE = "rke.cattle.io/worker-role"

_INSTALLER = "rancher/system-agent-installer-rke2"
#: Always there, with their Go zero values; the others only when they are set (Rancher 2.12 and later).
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


def drain_text(options: Object | None, *, single: bool) -> str:
    """The value of all drain annotations; on a cluster of a single machine nothing is evicted."""
    given = options or {}
    chosen = {key: given.get(key, default) for key, default in _ALWAYS.items()}
    chosen |= {key: given[key] for key in _WHEN_SET if given.get(key) not in (None, [])}
    if not chosen.get("ignoreErrors", True):
        del chosen["ignoreErrors"]
    if single:
        chosen["enabled"] = False
    return json.dumps(chosen, sort_keys=True, separators=(",", ":"))


def hooks(text: str, when: str) -> list[str]:
    """The annotations that must equal the text: `when` is preDrainHooks or postDrainHooks."""
    listed = json.loads(text).get(when) or ()
    return [hook["annotation"] for hook in listed if hook.get("annotation")]


def needs_drain(text: str) -> bool:
    """Whether anything at all is to be done before and after the plan."""
    options = json.loads(text)
    return bool(options["enabled"] or options.get("preDrainHooks") or options.get("postDrainHooks"))


def concurrency(text: str | None, members: int) -> int:
    """How many machines may be unavailable at once; 0 is no limit."""
    if not text:
        return 1
    if text.endswith("%"):
        return max(1, math.ceil(members * int(text[:-1]) / 100))
    return int(text)


def plan_of(cluster: Object, machine: Object) -> bytes:
    """The plan that a machine should have: which RKE2 it installs, and the hash that decides about drains."""
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
    """The DRAIN_HASH in a plan; empty when it has none."""
    if not plan:
        return ""
    for instruction in json.loads(plan).get("instructions") or ():
        for entry in instruction.get("env") or ():
            name, _, value = entry.partition("=")
            if name == "DRAIN_HASH":
                return str(value)
    return ""


def kubernetes_of(plan: bytes) -> str:
    """The Kubernetes version that a plan installs."""
    image = json.loads(plan)["instructions"][0]["image"]
    return str(image).rpartition(":")[2].replace("-rke2", "+rke2")


def data(secret: Object, key: str) -> bytes:
    """One entry of a Secret, decoded; empty when it is not there."""
    return base64.b64decode((secret.get("data") or {}).get(key) or "")


def encoded(content: bytes | str) -> str:
    """Content as a Secret holds it."""
    return base64.b64encode(content.encode() if isinstance(content, str) else content).decode()


def is_in_sync(secret: Object) -> bool:
    """Whether the machine has applied what it was given."""
    return data(secret, "plan") == data(secret, "appliedPlan")


def is_busy(secret: Object) -> bool:
    """Whether a drain of the machine is under way."""
    annotations = objects.annotations_of(secret)
    return not is_in_sync(secret) or any(annotations.get(key) for key in BUSY)


def _config(machine: Object) -> str:
    roles = sorted(key for key in objects.labels(machine) if key.endswith("-role"))
    return json.dumps({"node-label": [f"rke.cattle.io/machine={objects.uid(machine)}"], "roles": roles})
