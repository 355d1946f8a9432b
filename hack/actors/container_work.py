"""The work of a container, derived from its command line."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from hack.cluster.scenario import Durations
    from upgrade_manager.kube.objects import Object

_SUC_PLAN_LABEL = "upgrade.cattle.io/plan"


class Work(StrEnum):
    """The commands of the toolkit image; a scenario's faults name these values."""

    PREPARE = "prepare"
    PRE_DRAIN = "pre-drain"
    POST_DRAIN = "post-drain"
    SINGLE_NODE = "single-node-upgrade"
    MANIFESTS = "manifests"
    RESTORE_VM = "restore-vm"
    IMAGE_CLEANUP = "image-cleanup"
    OTHER = "other"

    @property
    def is_node_work(self) -> bool:
        """Report whether it changes its host."""
        return self in {Work.PREPARE, Work.PRE_DRAIN, Work.POST_DRAIN, Work.SINGLE_NODE}


_NODE_CALLS = {str(work): work for work in Work if work.is_node_work}


def work_of(pod: Object) -> Work:
    """Return the work of the Pod's first container; an unknown one of a Plan is image cleanup."""
    words = _words(container_of(pod))
    names = [word.rsplit("/", 1)[-1] for word in words]
    if "upgrade_manifests.sh" in names:
        return Work.MANIFESTS
    if "upgrade_node.sh" in names:
        after = names[names.index("upgrade_node.sh") + 1 :]
        return _NODE_CALLS.get(after[0] if after else "", Work.OTHER)
    if "restore-vm" in names:
        return Work.RESTORE_VM
    return Work.IMAGE_CLEANUP if _SUC_PLAN_LABEL in objects.labels(pod) else Work.OTHER


def container_of(pod: Object) -> Object:
    """Return the first container, or an empty object."""
    containers = objects.spec(pod).get("containers") or [{}]
    first = containers[0]
    return first if isinstance(first, dict) else {}


def env_of(pod: Object) -> dict[str, str]:
    """Return the container's environment as far as the Pod defines it."""
    fields = {
        "metadata.name": objects.name(pod),
        "metadata.namespace": objects.namespace(pod),
        "metadata.uid": objects.uid(pod),
        "spec.nodeName": objects.spec(pod).get("nodeName") or "",
    }
    result: dict[str, str] = {}
    for entry in container_of(pod).get("env") or ():
        path = ((entry.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath") or ""
        result[entry["name"]] = entry.get("value") or fields.get(path, "")
    return result


def option_of(pod: Object, option: str) -> str:
    """Return the value of `--option value` or `--option=value` on the command line, or an empty string."""
    words = _words(container_of(pod))
    for index, word in enumerate(words):
        if word == option and index + 1 < len(words):
            return words[index + 1]
        if word.startswith(option + "="):
            return word.removeprefix(option + "=")
    return ""


def duration_of(work: Work, durations: Durations) -> float:
    """Seconds that the work takes by itself, waits for others not counted."""
    return {
        Work.PREPARE: durations.prepare,
        Work.PRE_DRAIN: durations.pre_drain,
        Work.POST_DRAIN: durations.post_drain,
        Work.SINGLE_NODE: durations.single_node,
        Work.MANIFESTS: durations.manifests,
        Work.RESTORE_VM: durations.restore_vm,
        Work.IMAGE_CLEANUP: durations.image_cleanup,
        Work.OTHER: durations.other,
    }[work]


def _words(container: Object) -> list[str]:
    given = [*(container.get("command") or ()), *(container.get("args") or ())]
    return [word for text in given for word in text.split()]
