"""Blockers of Pods that do not run, with the remedies; facts/pod_reason.py has the rule.

jobs.py, imports.py and repository_outage.py call it.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.blockers.taints import taint_words, untaint_steps
from upgrade_manager.facts.node_obstacles import RESTART_RKE2, RKE2_AGENT, check_kubelet
from upgrade_manager.facts.pod_reason import (
    crashes,
    is_unassigned,
    lacks_config,
    pod_reason,
    show_events,
    unpulled_image,
)
from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from upgrade_manager.blockers.object_view import View
    from upgrade_manager.kube.objects import Object

#: The command that opens the registry's mirrors.
EDIT_MIRRORS = "kubectl edit settings.harvesterhci.io containerd-registry"


def pod_blocker(view: View, pod: Object, *, node: str, since: datetime) -> Blocker | None:
    """Return the blocker of a Pod that does not run; None if it runs, has run, or is being deleted."""
    found = pod_reason(pod)
    if found is None:
        return None
    reason, text = found
    place, name = objects.text(pod, "spec", "nodeName"), f"Pod {objects.qualified_name(pod)}"
    clause = _clause(view, reason, pod)
    return Blocker(
        reason=reason,
        kind="Pod",
        namespace=objects.namespace(pod),
        name=objects.name(pod),
        node=node or place,
        message=f"{name} {clause}" if clause else f"{name}: {text}",
        remedies=tuple(_remedies(view, reason, pod, node=place)),
        since=since,
        cause=_cause(reason, pod, text=clause if reason is BlockerReason.POD_PENDING else text),
    )


def _clause(view: View, reason: BlockerReason, pod: Object) -> str:
    """Return the clause that several Pods may have in common; empty if the words of the Pod say more."""
    if reason is BlockerReason.POD_PENDING and is_unassigned(pod):
        return "cannot start: the scheduler has not assigned a node"
    # The scheduler has the number of tainted nodes, not the taint.
    taints = taint_words(view, pod) if reason is BlockerReason.POD_UNSCHEDULABLE else ""
    return f"cannot be scheduled: {taints}" if taints else ""


def _cause(reason: BlockerReason, pod: Object, *, text: str) -> str:
    """Return what several Pods may have in common, as a predicate: the scheduler's words, its silence, or the image."""
    if reason is BlockerReason.POD_PENDING:
        return text
    if reason is BlockerReason.POD_UNSCHEDULABLE:
        return text.removeprefix("it ")
    image = unpulled_image(pod) if reason is BlockerReason.IMAGE_PULL_FAILED else ""
    return f"image {image} cannot be pulled" if image else ""


def _remedies(view: View, reason: BlockerReason, pod: Object, *, node: str) -> Iterator[Remedy]:
    """Yield the actions of the remedy, and the command that shows more details."""
    place = f"-n {objects.namespace(pod)} {objects.name(pod)}"
    if reason is BlockerReason.POD_UNSCHEDULABLE:
        yield from untaint_steps(view, pod) or (Remedy("Provide the resource that the scheduler reports as missing"),)
    elif reason is BlockerReason.IMAGE_PULL_FAILED:
        yield pull(node, unpulled_image(pod))
        yield Remedy("Repair the registry or its mirrors", command=EDIT_MIRRORS)
    elif reason is BlockerReason.POD_PENDING:
        yield from _delayed_by(node)
    elif crashes(pod):
        yield Remedy("Show why it ended", command=f"kubectl logs {place} --all-containers --previous")
        return
    elif lacks_config(pod):
        yield Remedy("Create the ConfigMap or Secret that the container refers to")
    else:
        log = f"tail -n 50 {RKE2_AGENT}/containerd/containerd.log"
        yield Remedy(f"Check containerd on node {node}", command=log)
        yield Remedy("If it hangs, check its disk, and restart it there", command=RESTART_RKE2)
    yield show_events(pod)


def _delayed_by(node: str) -> Iterator[Remedy]:
    if node:
        yield check_kubelet(node)
        yield Remedy("If it hangs, restart it there", command=RESTART_RKE2)
    else:
        schedulers = "kubectl -n kube-system get pods -l component=kube-scheduler"
        yield Remedy("Check the scheduler", command=schedulers)
        nodes = "on the control-plane nodes, one after the other"
        yield Remedy(f"If none is Ready, restart rke2-server {nodes}", command="systemctl restart rke2-server")


def pull(node: str, image: str) -> Remedy:
    """Return the remedy that shows why a node cannot pull the image, which may be unknown, or no valid name."""
    return Remedy(f"Find out why on node {node}", command=f"crictl pull {shlex.quote(image)}" if image else "")
