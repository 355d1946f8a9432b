"""Versions of Kubernetes on nodes, compared with the release's.

nodes/node_view.py and pipeline/ending/held_nodes.py decide by it whether Rancher has upgraded a node, and the Jobs
(toolkit/host/kubernetes_version.py) wait by it for the kubelet. node_obstacles.py has the remedy.
"""

from __future__ import annotations

import re
from functools import lru_cache

# Each reconcile compares the versions of all nodes, which are few and rarely change.

#: RKE2 counts its builds of a Kubernetes in the metadata: v1.33.5+rke2r1.
_VERSION = re.compile(
    r"v?([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})(?![0-9])[^+]*(?:\+[a-z0-9.-]*?([0-9]{1,9}))?$", re.ASCII
)
#: Part of a release candidate's version that its kubelet does not report.
_CANDIDATE = re.compile(r"-rc\.?\d+")


def kubelet_version(release: str) -> str:
    """Return the version that the kubelet of a release's Kubernetes reports."""
    return _CANDIDATE.sub("", release.strip())


@lru_cache(maxsize=1024)
def is_older(reported: str, release: str) -> bool:
    """Return True if a node's Kubernetes is older than the release's; False if either cannot be parsed."""
    have, want = _parse(reported), _parse(release)
    return have is not None and want is not None and have < want


@lru_cache(maxsize=1024)
def is_same(reported: str, release: str) -> bool:
    """Return True if a node's Kubernetes is the release's."""
    have, want = _parse(reported), _parse(release)
    return have == want if have and want else bool(reported) and kubelet_version(reported) == kubelet_version(release)


def _parse(version: str) -> tuple[int, int, int, int] | None:
    """Return the version with RKE2's build, which is 0 if the version has none."""
    match = _VERSION.match(kubelet_version(version))
    return (int(match[1]), int(match[2]), int(match[3]), int(match[4] or 0)) if match else None
