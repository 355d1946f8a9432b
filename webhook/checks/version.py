"""The plan names a release: an image, or a Version that exists; one without a checksum is a warning.

A release that an earlier plan has begun is finished before another one (release/unfinished.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.names import is_object_name
from upgrade_manager.facts import versions
from upgrade_manager.kube import objects
from upgrade_manager.release.unfinished import UnfinishedUpgrade
from webhook.check import Check, Finding
from webhook.cluster import NotInstalled
from webhook.listings import CLUSTERS, NODES, read_each, version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.kube.objects import Object
    from webhook.check import Subject


async def _find(subject: Subject) -> list[Finding]:
    name = subject.spec.version
    if subject.spec.image:
        return []
    if not name:
        return [Finding(message="Required. Set it to the name of a Version, or set spec.image")]
    # An invalid name could break the selector.
    found = await subject.cluster.list(version(name)) if is_object_name(name) else []
    if found and (refusal := await _unfinished(subject, name)):
        return [Finding(message=f"{refusal}. Set it to that release")]
    return list(_warnings(name, found[0])) if found else [Finding(message=versions.missing(name))]


async def _unfinished(subject: Subject, name: str) -> str:
    """Return why an earlier plan's upgrade permits no such release; empty if it does, or there is none."""
    clusters, nodes = await read_each(subject.cluster, CLUSTERS, NODES)
    if isinstance(clusters, NotInstalled) or isinstance(nodes, NotInstalled) or not clusters:
        return ""
    unfinished = UnfinishedUpgrade.of(clusters[0])
    return unfinished.refusal(name, nodes, is_name=True) if unfinished else ""


def _warnings(name: str, found: Object) -> Iterator[Finding]:
    if not objects.text(found, "spec", "isoURL"):
        yield Finding(message=versions.without_url(name), denies=False)
    if not objects.text(found, "spec", "isoChecksum"):
        yield _unchecked(name)


def _unchecked(name: str) -> Finding:
    return Finding(
        message=f"{versions.named(name)} lacks spec.isoChecksum, so nothing shows that the ISO is the "
        "release's. Set it to the SHA-512 of the ISO (sha512sum) before you create the plan",
        denies=False,
    )


CHECK = Check(name="version", field="spec.version", find=_find)
