"""The image that the plan names exists, and the upgrade repository can mount it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import (
    ANNOTATION_OS_UPGRADE_IMAGE,
    HARVESTER_SYSTEM,
    OS_UPGRADE_IMAGE_VALUE,
)
from upgrade_manager.api.names import image_problem
from upgrade_manager.facts.image_import import IMPORT_AGAIN, SHARED_ANNOTATION, missing, named
from upgrade_manager.kube import objects
from webhook.check import Check, Finding
from webhook.listings import image

if TYPE_CHECKING:
    from webhook.check import Subject


async def _find(subject: Subject) -> list[Finding]:
    if not subject.spec.image:
        return []
    problem = image_problem(subject.spec.image)
    if problem:
        return [Finding(problem=problem)]
    name = subject.spec.image.removeprefix(f"{HARVESTER_SYSTEM}/")
    found = await subject.cluster.list(image(name))
    if not found:
        absent = missing(name)
        return [Finding(problem=f"{named(name)} {absent.why}", remedies=absent.ways_out)]
    if objects.text(found[0], "metadata", "annotations", ANNOTATION_OS_UPGRADE_IMAGE) == OS_UPGRADE_IMAGE_VALUE:
        return []
    lacks = f"lacks the annotation {SHARED_ANNOTATION}, without which several Pods cannot mount it"
    return [Finding(problem=f"{named(name)} {lacks}. {IMPORT_AGAIN}")]


CHECK = Check(name="image", field="spec.image", find=_find)
