"""The ISO that the plan's Version names can be downloaded; its import would fail otherwise. gate.py has the row."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING

from upgrade_manager.facts import versions
from upgrade_manager.kube import objects
from upgrade_manager.release.repository_client import shown
from webhook.check import Check, Finding, NotNeeded
from webhook.preflight.iso_server import Unreachable
from webhook.preflight.release import NO_VERSION, find_version

if TYPE_CHECKING:
    from webhook.check import Subject
    from webhook.preflight.iso_server import IsoServer

NAME = "ISO"
#: Bytes; Harvester's ISOs have several gigabytes, error pages and files of checksums a few kilobytes.
MIN_SIZE = 1 << 30
_GIB = 1 << 30
_KIB = 1 << 10
#: The way out where the user's machine is in another network than the cluster.
_CORRECT = "Correct spec.isoURL of the Version"
_FROM_HERE = "If the cluster reaches it and this machine does not, use --skip-iso"


def check(server: IsoServer, *, is_skipped: bool) -> Check:
    """Return the check."""

    async def find(subject: Subject) -> list[Finding]:
        if subject.spec.image:
            raise NotNeeded("spec.image names an ISO that is imported already")
        version = await find_version(subject.cluster, subject.spec.version)
        if version is None:
            # The check of the version reports it.
            raise NotNeeded(NO_VERSION)
        url = objects.text(version, "spec", "isoURL")
        if not url:
            return [Finding(problem=versions.without_url(subject.spec.version))]
        if is_skipped:
            raise NotNeeded("--skip-iso is set")
        found = await iso_finding(server, url)
        where = f"{versions.named(subject.spec.version)}: ISO {shown(url)}"
        return [replace(found, problem=f"{where}: {found.problem}")] if found else []

    return Check(name=NAME, field="spec.version", find=find)


async def iso_finding(server: IsoServer, url: str) -> Finding | None:
    """Return why the ISO cannot be downloaded from here, with the remedy, or a warning; None if it can."""
    try:
        response = await server.ask(url)
    except Unreachable as error:
        return Finding(problem=f"{error}. {_FROM_HERE}")
    if response.status >= HTTPStatus.BAD_REQUEST:
        return Finding(problem=f"HTTP {response.status}{_phrase(response.status)}. {_CORRECT}")
    if response.size is not None and response.size < MIN_SIZE:
        small = f"the file has {size_text(response.size)}, and ISOs of Harvester have several GiB. {_CORRECT}"
        return Finding(problem=small, denies=False)
    return None


def _phrase(status: int) -> str:
    try:
        return f" {HTTPStatus(status).phrase}"
    except ValueError:
        return ""


def size_text(size: int) -> str:
    """Return a size for messages."""
    return f"{size / _GIB:.1f} GiB" if size >= _GIB else f"{-(-size // _KIB)} KiB"
