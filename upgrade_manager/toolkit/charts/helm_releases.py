"""Compares a Helm release with its chart in the new release, and repairs a Helm release whose helm was killed.

rancher.py and addons.py call it before they run helm.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import NotFound
from upgrade_manager.kube.resources import SECRETS

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.toolkit.charts.helm import Release
    from upgrade_manager.toolkit.run.context import ToolkitContext

#: The age from which a pending revision belongs to a killed helm: Rancher's helm has a timeout of five minutes, and
#: only this command runs another helm.
INTERRUPTED_AFTER = timedelta(minutes=10)
_PENDING = "pending-"

_log = structlog.get_logger(__name__)


async def release_missing(context: ToolkitContext, release: Release, *, chart: str, app_version: str = "") -> str:
    """Return the reason why the release does not run this chart, given as name and version; empty if it does."""
    if not await _revisions(context, release):
        return f"{release} does not exist"
    latest = await context.helm.latest(release)
    if latest.chart == chart and app_version in {"", latest.app_version} and latest.status == "deployed":
        return ""
    if latest.status.startswith(_PENDING):
        return (
            f"{release} is {latest.status} with chart {latest.chart}; if helm was interrupted, the revision is "
            f"removed {INTERRUPTED_AFTER.seconds // 60} min after it began"
        )
    if latest.chart == chart and latest.status != "deployed":
        return f"{release} is {latest.status} with chart {chart}"
    return f"{release} has chart {latest.chart} ({latest.status}) instead of {chart}"


async def is_pending(context: ToolkitContext, release: Release) -> bool:
    """Return True while a helm upgrades the release, or after a helm was killed during an upgrade."""
    revisions = await _revisions(context, release)
    return bool(revisions) and _status(revisions[-1]).startswith(_PENDING)


async def remove_interrupted(context: ToolkitContext, release: Release) -> None:
    """Delete the record of a latest revision that a killed helm left pending, so that helm accepts an upgrade.

    The workloads stay unchanged, because a rollback would start the previous version of Rancher on data that the new
    version may have converted.
    """
    revisions = await _revisions(context, release)
    if len(revisions) <= 1 or not _status(revisions[-1]).startswith(_PENDING):
        return
    latest = revisions[-1]
    since = parse_time(objects.metadata(latest).get("creationTimestamp"))
    if since is None or context.now() - since < INTERRUPTED_AFTER:
        return
    _log.warning("interrupted Helm revision removed", release=str(release), revision=objects.name(latest))
    try:
        await context.client.delete(SECRETS, objects.name(latest), namespace=release.namespace, uid=objects.uid(latest))
    except NotFound:
        return


async def _revisions(context: ToolkitContext, release: Release) -> list[Object]:
    """Return the metadata of the Secrets in which helm stores the release's revisions, oldest first."""
    selector = f"owner=helm,name={release.name}"
    found = await context.client.list(SECRETS, namespace=release.namespace, label_selector=selector, metadata_only=True)
    return sorted(found.items, key=_number)


def _status(revision: Object) -> str:
    return objects.labels(revision).get("status", "")


def _number(revision: Object) -> int:
    text = objects.labels(revision).get("version", "")
    return int(text) if text.isascii() and text.isdigit() else 0
