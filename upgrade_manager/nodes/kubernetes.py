from __future__ import annotations

import re

#: What of a version counts: the kubelet reports no pre-release, and Rancher compares no build either.
_RELEASE = re.compile(r"v?([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})(?![0-9])", re.ASCII)


def is_older(reported: str, wanted: str) -> bool:
    """Whether a node's Kubernetes is older than the release's; no where either cannot be read.

    v1.33.5-rc1+rke2r1 and v1.33.5+rke2r2 are the same here, as they are to Rancher.
    """
    have, want = _release(reported), _release(wanted)
    return have is not None and want is not None and have < want


def _release(version: str) -> tuple[int, int, int] | None:
    match = _RELEASE.match(version.strip())
    return (int(match[1]), int(match[2]), int(match[3])) if match else None
