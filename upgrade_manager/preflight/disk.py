"""Checks that a node's disk has room for the new release's images, with the numbers of its kubelet.

check.py calls it for each node; kubelets.py reads the numbers.

The kubelet removes images once disk usage exceeds imageGCHighThresholdPercent, which would undo the image preload.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

from upgrade_manager.preflight.poller import ProbeError

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.preflight.kubelets import KubeletReader

#: Upper bound of the size of the new release's images, in bytes.
NEW_IMAGES = 13 * 1024**3
#: The kubelet's default of imageGCHighThresholdPercent.
DEFAULT_THRESHOLD = 85
#: Seconds for both requests to one kubelet.
TIMEOUT = 10.0
_HUNDRED = 100
_NODE_FIRST = re.compile(r'\s*\{\s*"node"\s*:\s*')


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """The file system that holds a node's images; sizes in bytes."""

    used: int
    #: Above zero.
    capacity: int
    #: imageGCHighThresholdPercent, 0 to 100.
    threshold: int
    #: The bytes that the image preload adds.
    added: int = NEW_IMAGES

    @property
    def suffices(self) -> bool:
        """True if usage with the added images stays within the threshold, in exact integer arithmetic."""
        return (self.used + self.added) * _HUNDRED <= self.threshold * self.capacity

    @property
    def verdict(self) -> str:
        """Projected usage and threshold, as in `97.4 % > 85 %`; rounded up, so that text and result agree."""
        tenths = -((self.used + self.added) * _HUNDRED * 10 // -self.capacity)
        return f"{tenths // 10}.{tenths % 10} % {'<=' if self.suffices else '>'} {self.threshold} %"


async def read_disk(kubelets: KubeletReader, node: Object) -> Disk:
    """Read a node's disk usage and threshold from its kubelet.

    Raises ProbeError; Transient or Throttled when the API server itself does not respond.
    """
    try:
        async with asyncio.timeout(TIMEOUT):
            threshold = read_threshold(await kubelets.read(node, "/configz"))
            used, capacity = read_usage(await kubelets.read(node, "/stats/summary"))
    except TimeoutError as error:
        raise ProbeError(f"no response within {TIMEOUT:g} s") from error
    return Disk(used=used, capacity=capacity, threshold=threshold)


def read_usage(body: bytes) -> tuple[int, int]:
    """Return bytes used and capacity from (the beginning of) a /stats/summary response.

    Raises ProbeError when they are missing, as while a kubelet starts, or invalid.
    """
    stats = _object(_node_of(body).get("fs"))
    used, capacity = _bytes(stats, "usedBytes"), _bytes(stats, "capacityBytes")
    if capacity == 0:
        raise ProbeError("/stats/summary: node.fs.capacityBytes is 0")
    return used, capacity


def read_threshold(body: bytes) -> int:
    """Return imageGCHighThresholdPercent from a /configz response. Raises ProbeError when it is invalid."""
    configuration = _parsed(body, "/configz").get("kubeletconfig")
    if not isinstance(configuration, dict):
        raise ProbeError("/configz: kubeletconfig is missing")
    value = configuration.get("imageGCHighThresholdPercent")
    if value is None:
        return DEFAULT_THRESHOLD
    if _is_count(value) and value <= _HUNDRED:
        return value
    raise ProbeError(f"/configz: imageGCHighThresholdPercent is {_shown(value)}, not 0 to 100")


def _bytes(stats: dict[str, Any], key: str) -> int:
    value = stats.get(key)
    if _is_count(value):
        return value
    raise ProbeError(f"/stats/summary: node.fs.{key} is {_shown(value)}")


def _node_of(body: bytes) -> dict[str, Any]:
    """Return the `node` member, without parsing the Pods that follow it."""
    text = body.decode("utf-8", errors="replace")
    start = _NODE_FIRST.match(text)
    if start is None:
        return _object(_parsed(body, "/stats/summary").get("node"))
    try:
        node, _ = json.JSONDecoder().raw_decode(text, start.end())
    except (ValueError, RecursionError) as error:
        raise ProbeError("/stats/summary: invalid JSON") from error
    return _object(node)


def _parsed(body: bytes, path: str) -> dict[str, Any]:
    try:
        return _object(json.loads(body))
    except (ValueError, RecursionError) as error:
        raise ProbeError(f"{path}: invalid JSON") from error


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _shown(value: Any) -> str:
    return "missing" if value is None else repr(value)[:40]
