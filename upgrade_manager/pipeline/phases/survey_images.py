"""The toolkit image on the nodes: survey.py shows before any change that each node has or gets it.

blockers/known.py reports a node that cannot pull it as ImageMissing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.blockers import BlockerReason
from upgrade_manager.api.keys import MANAGED_SELECTOR
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.blockers.known_wait import UnpulledImageWait
from upgrade_manager.blockers.pods import EDIT_MIRRORS, pull
from upgrade_manager.facts.pod_reason import pod_reason, start_progress, unpulled_image
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import NODES
from upgrade_manager.release.image_lists import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.pipeline.context import ReconcileContext
    from upgrade_manager.pipeline.phases.plan_jobs import PlanJob

#: Loads an archive of images on a Harvester node.
_LOAD = (
    "/var/lib/rancher/rke2/bin/ctr -a /run/k3s/containerd/containerd.sock -n k8s.io images import --no-unpack image.tar"
)


async def all_have_image(ctx: ReconcileContext) -> bool:
    """Return True if each managed node lists the toolkit image; a kubelet lists 50 images, so that it may have others.

    The cache of Nodes lacks the images.
    """
    image = canonical(str(ctx.toolkit))
    nodes = (await ctx.client.list(NODES, label_selector=MANAGED_SELECTOR)).items
    return bool(nodes) and all(image in _images(node) for node in nodes)


def _images(node: Object) -> set[object]:
    return {name for image in objects.items(node, "status", "images") for name in objects.items(image, "names")}


def image_waits(
    ctx: ReconcileContext, jobs: Mapping[str, PlanJob], pods: Iterable[Object]
) -> dict[str, UnpulledImageWait]:
    """Return the waits for images by the name of the Job whose Pod has no image; `jobs` are those of the nodes."""
    running = {job.state.uid: job for job in jobs.values()}
    found: dict[str, UnpulledImageWait] = {}
    for pod in pods:
        reason, text = pod_reason(pod) or (None, "")
        job = running.get(objects.owner_uid(pod))
        if job is not None and reason is BlockerReason.IMAGE_PULL_FAILED:
            found[job.state.name] = _wait(ctx, pod, job.node, text=text)
    return found


def _wait(ctx: ReconcileContext, pod: Object, node: str, *, text: str) -> UnpulledImageWait:
    image = unpulled_image(pod) or str(ctx.toolkit)
    return UnpulledImageWait(
        namespace=objects.namespace(pod),
        name=objects.name(pod),
        node=node,
        since=start_progress(pod) or ctx.now(),
        cause=f"their nodes lack image {image}",
        detail=f"node {node} lacks image {image}, which all Jobs of the upgrade and its repository run: {text}",
        remedies=(
            pull(node, image),
            Remedy(f"Without a registry, copy the image to node {node} as image.tar, and load it there", command=_LOAD),
            Remedy("Or name a mirror that has it", command=EDIT_MIRRORS),
        ),
    )
