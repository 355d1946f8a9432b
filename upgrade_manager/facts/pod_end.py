"""The reasons of Pods that do not end, and the remedies.

The finders of failed Jobs (blockers/failing_jobs.py) and of drains (blockers/drains.py) call it; pod_reason.py has the
reasons of Pods that do not run, and job_state.py the text about a failed Job whose Pod is not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from upgrade_manager.api.remedy import Remedy
from upgrade_manager.api.text import name_list
from upgrade_manager.facts.final_phases import is_final
from upgrade_manager.facts.node_obstacles import check_kubelet
from upgrade_manager.facts.pod_reason import show_events
from upgrade_manager.facts.removal import repair_controller
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.kube.objects import Object

#: The Job controller's own finalizer, which it removes once it has counted the Pod.
_JOB_TRACKING = "batch.kubernetes.io/job-tracking"


class UnendedPod(NamedTuple):
    """A Pod that is to end."""

    #: The predicate of a sentence about the Pod.
    why: str
    ways_out: tuple[Remedy, ...]


def unended(pod: Object) -> UnendedPod:
    """Return why the Pod does not end: its kubelet has not ended its containers, or a finalizer holds it."""
    node, held = objects.text(pod, "spec", "nodeName"), _finalizers(pod)
    why = "does not end" + (f" on node {node}" if node else "")
    if held:
        why += f", and its finalizer{' holds' if len(held) == 1 else 's hold'} it ({name_list(held)})"
    return UnendedPod(why, tuple(_ways_out(pod, node, held)))


def _ways_out(pod: Object, node: str, held: list[str]) -> Iterator[Remedy]:
    """Yield the remedies; the Pod of a node that is up is never deleted by force, because it may write the OS."""
    yield show_events(pod)
    if node and not (held and is_final(pod)):
        yield check_kubelet(node)
    if held:
        yield repair_controller(held)
    elif node:
        named = f"-n {objects.namespace(pod)} {objects.name(pod)}"
        delete = f"kubectl delete pod {named} --force --grace-period=0"
        yield Remedy("If the node is off and stays so, delete the Pod", command=delete)


def _finalizers(pod: Object) -> list[str]:
    found = objects.items(pod, "metadata", "finalizers")
    return [one for one in found if isinstance(one, str) and one != _JOB_TRACKING]
