"""The Job that the system-upgrade-controller creates for a Plan and a node, field by field."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from typing import TYPE_CHECKING, Any

from hack.actors.kinds import controller_reference
from hack.actors.suc_plan import hostname
from upgrade_manager.api.keys import LABEL_HOSTNAME, suc_node_label
from upgrade_manager.api.names import safe_concat_name
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import SUC_PLANS

if TYPE_CHECKING:
    from hack.scenario import UpgradeController
    from upgrade_manager.kube.objects import Object

NAME = "system-upgrade-controller"
LABEL_CONTROLLER = "upgrade.cattle.io/controller"
LABEL_EXCLUSIVE = "upgrade.cattle.io/exclusive"
LABEL_NODE = "upgrade.cattle.io/node"
LABEL_PLAN = "upgrade.cattle.io/plan"
LABEL_VERSION = "upgrade.cattle.io/version"
ANNOTATION_TTL = "upgrade.cattle.io/ttl-seconds-after-finished"
ANNOTATION_APPLIED = "objectset.rio.cattle.io/applied"


def build(plan: Object, status: Object, node: Object, settings: UpgradeController, *, parallelism: int) -> Object:
    """Build the Job as it is sent to the API server."""
    labels = _labels(plan, status, node)
    spec: Object = {
        "parallelism": parallelism,
        "completions": 1,
        "backoffLimit": settings.backoff_limit,
        "template": {
            "metadata": {"labels": labels, "annotations": _copied(objects.annotations_of(plan), annotation=True)},
            "spec": _pod(plan, status, node, settings),
        },
        "ttlSecondsAfterFinished": settings.ttl,
        "podReplacementPolicy": "TerminatingOrFailed",
    }
    deadline = _deadline(plan, settings)
    if deadline:
        spec["activeDeadlineSeconds"] = deadline
    job: Object = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name_of(plan, status, node),
            "namespace": objects.namespace(plan),
            "labels": dict(labels),
            "annotations": {
                ANNOTATION_TTL: str(settings.ttl),
                **_copied(objects.annotations_of(plan), annotation=True),
            },
            "ownerReferences": [controller_reference(SUC_PLANS, plan, blocks=False)],
        },
        "spec": spec,
    }
    return _signed(job, plan)


def name_of(plan: Object, status: Object, node: Object) -> str:
    """Return the Job's name, which is nearly always shortened: the hash alone has 56 characters."""
    short = objects.name(node).split(".")[0]
    return safe_concat_name("apply", objects.name(plan), "on", short, "with", status["latestHash"])


def template_of(job: Object) -> Object:
    """Return the immutable part of a Job: a difference requires delete and create."""
    text = objects.annotations_of(job).get(ANNOTATION_APPLIED) or ""
    try:
        applied = json.loads(gzip.decompress(base64.b64decode(text + "==")))
    except (ValueError, OSError, EOFError):
        return {}
    found = applied.get("spec", {}).get("template")
    return found if isinstance(found, dict) else {}


def _signed(job: Object, plan: Object) -> Object:
    """Add wrangler's annotations for applied objects: the object set's owner and the applied object."""
    identity = (NAME, "upgrade.cattle.io/v1, Kind=Plan", objects.name(plan), objects.namespace(plan))
    metadata = job["metadata"]
    metadata["labels"]["objectset.rio.cattle.io/hash"] = hashlib.sha1(  # noqa: S324  # as wrangler has it
        "".join(identity).encode()
    ).hexdigest()
    keys = ("id", "owner-gvk", "owner-name", "owner-namespace")
    metadata["annotations"] |= {
        f"objectset.rio.cattle.io/{key}": value for key, value in zip(keys, identity, strict=True)
    }
    text = json.dumps(job, sort_keys=True, separators=(",", ":")).encode()
    packed = base64.b64encode(gzip.compress(text, mtime=0)).decode().rstrip("=")
    metadata["annotations"][ANNOTATION_APPLIED] = packed
    return job


def _labels(plan: Object, status: Object, node: Object) -> dict[str, str]:
    return {
        **_copied(objects.labels(plan), annotation=False),
        LABEL_CONTROLLER: NAME,
        LABEL_EXCLUSIVE: "false",
        LABEL_NODE: objects.name(node),
        LABEL_PLAN: objects.name(plan),
        LABEL_VERSION: status["latestVersion"],
        suc_node_label(objects.name(plan)): status["latestHash"],
    }


def _copied(pairs: dict[str, str], *, annotation: bool) -> dict[str, str]:
    left_out = ("cattle.io/", "kubectl.kubernetes.io/") if annotation else ("cattle.io/",)
    return {key: value for key, value in pairs.items() if not any(part in key for part in left_out)}


def _deadline(plan: Object, settings: UpgradeController) -> int:
    """Return the deadline: absent or negative is the controller's default, 0 is none."""
    seconds = objects.spec(plan).get("jobActiveDeadlineSecs")
    return settings.deadline if seconds is None or seconds < 0 else int(seconds)


def _pod(plan: Object, status: Object, node: Object, settings: UpgradeController) -> Object:
    spec = objects.spec(plan)
    return {
        "volumes": _volumes(plan),
        "containers": [_container(plan, status, settings)],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirstWithHostNet",
        "serviceAccountName": spec.get("serviceAccountName") or "",
        "hostNetwork": True,
        "hostPID": True,
        "hostIPC": True,
        "affinity": _affinity(plan, node),
        "tolerations": [
            {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
            *(spec.get("tolerations") or ()),
        ],
    }


def _container(plan: Object, status: Object, settings: UpgradeController) -> Object:
    given = objects.spec(plan).get("upgrade") or {}
    container: Object = {
        "name": "upgrade",
        "image": _tagged(given.get("image") or "", status["latestVersion"]),
        "env": _env(plan, status, given),
        "volumeMounts": _mounts(plan, given),
        "imagePullPolicy": settings.pull_policy,
        "securityContext": given.get("securityContext")
        or {"privileged": True, "capabilities": {"add": ["CAP_SYS_BOOT"]}},
    }
    return container | {key: given[key] for key in ("command", "args", "envFrom") if given.get(key)}


def _tagged(image: str, version: str) -> str:
    return image if ":" in image.rsplit("/", 1)[-1] or "@" in image else f"{image}:{version}"


def _env(plan: Object, status: Object, given: Object) -> list[Object]:
    fields = {"NODE_NAME": "spec.nodeName", "POD_NAME": "metadata.name", "POD_UID": "metadata.uid"}
    values = {
        "PLAN_NAME": objects.name(plan),
        "PLAN_LATEST_HASH": status["latestHash"],
        "PLAN_LATEST_VERSION": status["latestVersion"],
    }
    first = [{"name": f"SYSTEM_UPGRADE_{key}", "valueFrom": _field(path)} for key, path in fields.items()]
    last = [{"name": f"SYSTEM_UPGRADE_{key}", "value": value} for key, value in values.items()]
    return [*first, *(given.get("envs") or ()), *last]


def _field(path: str) -> Object:
    return {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}


def _volumes(plan: Object) -> list[Object]:
    spec = objects.spec(plan)
    items = [{"path": what, **_field(f"metadata.{what}")} for what in ("labels", "annotations")]
    volumes: list[Object] = [
        {"name": "host-root", "hostPath": {"path": "/", "type": "Directory"}},
        {"name": "pod-info", "downwardAPI": {"items": items, "defaultMode": 420}},
    ]
    for secret in spec.get("secrets") or ():
        source: Object = {"secretName": secret["name"], "optional": bool(secret.get("ignoreUpdates"))}
        if secret.get("defaultMode") is not None:
            source["defaultMode"] = secret["defaultMode"]
        volumes.append({"name": safe_concat_name("secret", secret["name"]), "secret": source})
    given = (spec.get("upgrade") or {}).get("volumes") or ()
    return volumes + [{"name": one["name"], "hostPath": {"path": one["source"]}} for one in given]


def _mounts(plan: Object, given: Object) -> list[Object]:
    mounts: list[Object] = [
        {"name": "host-root", "mountPath": "/host"},
        {"name": "pod-info", "readOnly": True, "mountPath": "/run/system-upgrade/pod"},
    ]
    for secret in objects.spec(plan).get("secrets") or ():
        path = secret["path"] if secret["path"].startswith("/") else f"/run/system-upgrade/secrets/{secret['path']}"
        mounts.append({"name": safe_concat_name("secret", secret["name"]), "readOnly": True, "mountPath": path})
    return mounts + [{"name": one["name"], "mountPath": one["destination"]} for one in given.get("volumes") or ()]


def _affinity(plan: Object, node: Object) -> Object:
    terms: list[Any] = [{"matchExpressions": [_is_in(LABEL_HOSTNAME, hostname(node))]}]
    apart = {
        "labelSelector": {"matchExpressions": [_is_in(LABEL_PLAN, objects.name(plan))]},
        "topologyKey": LABEL_HOSTNAME,
    }
    return {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}},
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]},
    }


def _is_in(key: str, value: str) -> Object:
    return {"key": key, "operator": "In", "values": [value]}
