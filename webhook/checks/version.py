"""The plan names a release: an image, or a Version that exists; one without a checksum is a warning.

A release that an earlier plan has begun is finished before another one (release/unfinished.py), and the steps from the
running release must be known (release/migrations/pairs.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.names import is_object_name
from upgrade_manager.facts import versions
from upgrade_manager.kube import objects
from upgrade_manager.release.migrations import pairs
from upgrade_manager.release.unfinished import UnfinishedUpgrade, version_before
from webhook.check import Check, Finding
from webhook.cluster import NotInstalled
from webhook.listings import CLUSTERS, NODES, SERVER_VERSION, read_all, read_each, version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from upgrade_manager.kube.objects import Object
    from webhook.check import Subject


async def _find(subject: Subject) -> list[Finding]:
    name = subject.spec.version
    if subject.spec.image:
        return []
    if not name:
        return [Finding(problem="Required. Set it to the name of a Version, or set spec.image")]
    if not is_object_name(name):
        # It could break the selector.
        return [_missing(name)]
    found, settings = await read_all(subject.cluster, version(name), SERVER_VERSION)
    if not found:
        return [_missing(name)]
    refusal = await _refusal(subject, name, running="".join(map(versions.running, settings[:1])))
    return [Finding(problem=refusal)] if refusal else list(_warnings(name, found[0]))


async def _refusal(subject: Subject, name: str, *, running: str) -> str:
    """Return why the cluster cannot be upgraded to the release, with the remedy; empty if it can."""
    found = await read_each(subject.cluster, CLUSTERS, NODES)
    clusters, nodes = (() if isinstance(one, NotInstalled) else one for one in found)
    unfinished = UnfinishedUpgrade.of(next(iter(clusters), None))
    if unfinished and (refused := unfinished.refusal(name, nodes, is_name=True)):
        return f"{refused}. Set it to that release"
    current = version_before(unfinished, nodes, running=running)
    unknown = pairs.refusal(current, name) if current and not subject.spec.force else ""
    return f"The upgrade from {current} to {name} is not allowed: {unknown}. {pairs.FORCED}" if unknown else ""


def _missing(name: str) -> Finding:
    return Finding(problem=versions.missing(name), remedies=(versions.CREATE,))


def _warnings(name: str, found: Object) -> Iterator[Finding]:
    if not objects.text(found, "spec", "isoURL"):
        yield Finding(problem=versions.without_url(name), denies=False)
    if not objects.text(found, "spec", "isoChecksum"):
        yield _unchecked(name)


def _unchecked(name: str) -> Finding:
    return Finding(
        problem=f"{versions.named(name)} lacks spec.isoChecksum, so nothing shows that the ISO is the "
        "release's. Set it to the SHA-512 of the ISO (sha512sum) before you create the plan",
        denies=False,
    )


CHECK = Check(name="version", field="spec.version", find=_find)
