"""Rancher's rule for the features of its chart: one key that it does not know, and the whole text is refused."""

from __future__ import annotations

#: Keys that all releases know, with their defaults.
_KNOWN = {
    "fleet": True,
    "harvester": True,
    "harvester-baremetal-container-workload": False,
    "managed-system-upgrade-controller": True,
    "multi-cluster-management": True,
    "multi-cluster-management-agent": False,
    "rke2": True,
    "turtles": True,
    "ui-sql-cache": True,
}
_BOOLEANS = {"true": True, "false": False}


def features_of(version: str, text: str) -> dict[str, bool]:
    """Return the features of a Rancher that starts with this text: `key=true,key=false`; empty for none."""
    known = _KNOWN | _of_release(version)
    given = [part.partition("=") for part in text.split(",")] if text else []
    if not all(key in known and value in _BOOLEANS for key, _, value in given):
        # Rancher logs the refusal, and starts with its defaults.
        return known
    return known | {key: _BOOLEANS[value] for key, _, value in given}


def _of_release(version: str) -> dict[str, bool]:
    minor = tuple(int(part) for part in version.removeprefix("v").split(".")[:2])
    older = {"embedded-cluster-api": False} if minor < (2, 14) else {}
    newer = {"crt-token-ttl-rotation": True} if minor >= (2, 15) else {}
    return older | newer
