"""Finds the cause of an import of the ISO without progress: its importer Pod, its DataVolume, or the image itself.

table.py lists it; pipeline/phases/iso_download.py is the phase that waits.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.blockers.deadlines import START, at_once, image_import
from upgrade_manager.blockers.deployments import outage
from upgrade_manager.blockers.finder import Finder
from upgrade_manager.blockers.object_view import Unreadable
from upgrade_manager.blockers.pods import pod_blocker
from upgrade_manager.blockers.wait import ImageWait
from upgrade_manager.facts.condition_words import unmet_conditions
from upgrade_manager.facts.deployments import restart
from upgrade_manager.facts.image_import import import_obstacle
from upgrade_manager.facts.pod_reason import POD_REASONS, start_progress
from upgrade_manager.kube import objects
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import DATA_VOLUMES, PERSISTENT_VOLUME_CLAIMS, PODS, VIRTUAL_MACHINE_IMAGES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta

    from upgrade_manager.blockers.deployments import Outage
    from upgrade_manager.blockers.object_view import View
    from upgrade_manager.facts.image_import import ImportObstacle
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource

_CDI = "cdi-deployment"
#: Characters that separate a password or a token from the rest of a URL.
_SECRET_PARTS = frozenset("@?#")
_IMPORTERS = "cdi.kubevirt.io=importer"
#: The backend that does not use the Containerized Data Importer (CDI).
_BACKING_IMAGE = "backingimage"


class FailedUploadWait(ImageWait):
    """A wait for the user to upload the image again, which nothing else repeats."""

    __slots__ = ()


def _overdue(wait: ImageWait) -> timedelta:
    return at_once(wait) if isinstance(wait, FailedUploadWait) else image_import(wait)


def _blockers(view: View, wait: ImageWait) -> Iterator[Blocker]:
    """Yield the importer Pod if it does not run, and the image with the messages of its import's objects."""
    image = _named(view, VIRTUAL_MACHINE_IMAGES, wait)
    obstacle = import_obstacle(image)
    if obstacle is not None and obstacle.ways_out:
        yield _blocker(wait, why=obstacle.why, remedies=obstacle.ways_out)
        return
    words = [objects.excerpt(wait.detail), *_image_words(image, obstacle)]
    pod: Object = {}
    stopped: Outage | None = None
    if objects.text(image, "spec", "backend") != _BACKING_IMAGE:
        try:
            pod = _importer(view, wait)
            words += [*_pod_words(pod), *_data_volume_words(_named(view, DATA_VOLUMES, wait))]
            stopped = outage(view, wait.namespace, _CDI)
        except Unreadable as error:
            # The image's conditions are worth more than the error alone.
            words.append(str(error))
    since = start_progress(pod) or wait.progressed
    waiting = pod_blocker(view, pod, node="", since=since) if pod and view.now - since >= START else None
    if waiting is not None:
        yield waiting
    # Reported always: after a restart, this blocker has the time since which the image makes no progress.
    yield _stuck(wait, words, pod, url=objects.excerpt(image, "spec", "url"), stopped=stopped)


def _named(view: View, resource: Resource, wait: ImageWait) -> Object:
    """Return the object of this kind with the image's name, which CDI's objects share; empty if it does not exist."""
    selector = f"metadata.name={wait.name}"
    found = view.objects(Selection(resource=resource, namespace=wait.namespace, field_selector=selector))
    return found[0] if found else {}


def _importer(view: View, wait: ImageWait) -> Object:
    """Return the newest Pod that writes into the image's claim, or into the claim that CDI exchanges for it."""
    claim = _named(view, PERSISTENT_VOLUME_CLAIMS, wait)
    claims = {wait.name, f"prime-{objects.uid(claim)}"}
    pods = view.objects(Selection(resource=PODS, namespace=wait.namespace, label_selector=_IMPORTERS))
    return max((pod for pod in pods if _claims(pod) & claims), key=_created, default={})


def _claims(pod: Object) -> set[str]:
    owners = objects.items(pod, "metadata", "ownerReferences")
    return {objects.name(pod).removeprefix("importer-"), *(objects.text(one, "name") for one in owners)}


def _created(pod: Object) -> str:
    return objects.text(pod, "metadata", "creationTimestamp")


def _image_words(image: Object, obstacle: ImportObstacle | None) -> Iterator[str]:
    if obstacle is not None:
        yield obstacle.why
    yield from unmet_conditions(image)


def _pod_words(pod: Object) -> Iterator[str]:
    if pod:
        yield f"Pod {objects.name(pod)} is {objects.text(pod, 'status', 'phase') or 'new'}"
    for container in objects.items(pod, "status", "containerStatuses"):
        failure = objects.excerpt(container, "lastState", "terminated", "message")
        if failure:
            yield f"it was restarted after: {failure}"


def _data_volume_words(volume: Object) -> Iterator[str]:
    for condition in unmet_conditions(volume):
        yield f"DataVolume {condition}"


def _stuck(wait: ImageWait, words: list[str], pod: Object, *, url: str, stopped: Outage | None) -> Blocker:
    """Return the blocker of the image; an outage of CDI's Deployment explains the import alone."""
    problem = stopped.problem if stopped else ""
    reported = "; ".join(filter(None, [problem, *words])) or "Harvester does not report why"
    why = f"its import makes no progress ({reported})"
    if stopped:
        return _blocker(wait, why=why, remedies=stopped.remedies)
    place = f"-n {wait.namespace}"
    look = f"kubectl logs {place} {objects.name(pod)}" if pod else f"kubectl get datavolumes,pods {place}"
    responds = "Check on a node that the source of the image responds"
    # The remedy omits a URL that may contain a password or a token.
    curl = f"curl -I {shlex.quote(url)}" if url and not _SECRET_PARTS & set(url) else ""
    hangs = Remedy("If there is no error, CDI hangs", command=restart(wait.namespace, _CDI))
    remedies = (Remedy(responds, command=curl), Remedy("Show what it does", command=look), hangs)
    return _blocker(wait, why=why, remedies=remedies)


def _blocker(wait: ImageWait, *, why: str, remedies: tuple[Remedy, ...]) -> Blocker:
    return Blocker(
        reason=BlockerReason.IMPORT_STUCK,
        kind=wait.kind.object_kind,
        namespace=wait.namespace,
        name=wait.name,
        message=f"VirtualMachineImage {wait.namespace}/{wait.name}: {why}",
        remedies=remedies,
        since=wait.progressed,
    )


FINDERS = (
    Finder(
        wait=ImageWait,
        reasons=(BlockerReason.IMPORT_STUCK, *POD_REASONS),
        overdue=_overdue,
        find=_blockers,
    ),
)
