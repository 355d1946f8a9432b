"""Whether a node's disk takes the images of the new release, as its kubelet counts.

The kubelet removes images as soon as the disk is fuller than imageGCHighThresholdPercent, so images that are preloaded
beyond that would be gone when they are needed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, TypeGuard

from upgrade_manager.preflight.errors import Unanswered

#: What the new release's images take, at most.
NEW_IMAGES = 13 * 1024**3
#: The kubelet's own default.
DEFAULT_THRESHOLD = 85
_HUNDRED = 100
#: A summary starts with the node and goes on with its Pods, which are most of it.
_NODE_FIRST = re.compile(r'\s*\{\s*"node"\s*:\s*')


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """The file system that a kubelet keeps images on; bytes, and percent above which it removes some."""

    used: int
    #: Above zero.
    capacity: int
    #: 0 to 100.
    threshold: int

    @property
    def suffices(self) -> bool:
        """Whether it would still be at or below the threshold with the new images; exact, in whole numbers."""
        return (self.used + NEW_IMAGES) * _HUNDRED <= self.threshold * self.capacity

    @property
    def verdict(self) -> str:
        """What it comes to, as in `97.4 % > 85 %`; rounded up, so that what is above also looks so."""
        tenths = -((self.used + NEW_IMAGES) * _HUNDRED * 10 // -self.capacity)
        return f"{tenths // 10}.{tenths % 10} % {'<=' if self.suffices else '>'} {self.threshold} %"


def read_usage(body: bytes) -> tuple[int, int]:
    """Bytes used and capacity from a kubelet's /stats/summary, of which only the beginning need be there.

    Raises Unanswered where they are missing, as they are while a kubelet starts, or cannot be.
    """
    stats = _object(_node_of(body).get("fs"))
    used, capacity = _bytes(stats, "usedBytes"), _bytes(stats, "capacityBytes")
    if capacity == 0:
        raise Unanswered("its /stats/summary has 0 for node.fs.capacityBytes")
    return used, capacity


def read_threshold(body: bytes) -> int:
    """The imageGCHighThresholdPercent of a kubelet's /configz. Raises Unanswered for what is no percentage."""
    configuration = _parsed(body, "/configz").get("kubeletconfig")
    if not isinstance(configuration, dict):
        raise Unanswered("its /configz has no kubeletconfig")
    value = configuration.get("imageGCHighThresholdPercent")
    if value is None:
        return DEFAULT_THRESHOLD
    if _is_count(value) and value <= _HUNDRED:
        return value
    raise Unanswered(f"its /configz has {_shown(value)} for imageGCHighThresholdPercent, not 0 to 100")


def _bytes(stats: dict[str, Any], key: str) -> int:
    value = stats.get(key)
    if _is_count(value):
        return value
    raise Unanswered(f"its /stats/summary has {_shown(value)} for node.fs.{key}")


def _node_of(body: bytes) -> dict[str, Any]:
    """The node's part, without reading the Pods' where they come after it."""
    text = body.decode("utf-8", errors="replace")
    start = _NODE_FIRST.match(text)
    if start is None:
        return _object(_parsed(body, "/stats/summary").get("node"))
    try:
        node, _ = json.JSONDecoder().raw_decode(text, start.end())
    except (ValueError, RecursionError) as error:
        raise Unanswered("its /stats/summary is no JSON that can be read") from error
    return _object(node)


def _parsed(body: bytes, path: str) -> dict[str, Any]:
    try:
        return _object(json.loads(body))
    except (ValueError, RecursionError) as error:
        raise Unanswered(f"its {path} is no JSON that can be read") from error


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _shown(value: Any) -> str:
    return "nothing" if value is None else repr(value)[:40]
