"""Messages of preflight results. They name every failing node and endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import ANNOTATION_SKIP_DISK_CHECK
from upgrade_manager.facts.node_obstacles import not_ready_ways_out

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Targets that are shown with their errors; with more, a message has all names but only the first errors.
MAX_REASONS = 3


def disks_too_full(verdicts: Mapping[str, str]) -> str:
    """Name the nodes without room for the new images."""
    return (
        "Disk usage with 13 GiB of new images would exceed the kubelet's imageGCHighThresholdPercent: "
        f"{_pairs(verdicts)}. Free disk space there, or skip this check with annotation "
        f'{ANNOTATION_SKIP_DISK_CHECK}: "true"'
    )


def certificates_expire(expiries: Mapping[str, str], *, days: int) -> str:
    """Name the endpoints whose certificates expire too soon."""
    return (
        f"API server certificates expire too soon (need {'1 day' if days == 1 else f'{days} days'}): "
        f"{_pairs(expiries)}. Restart rke2-server on that node to renew them"
    )


def kubelets_failed(errors: Mapping[str, str], remedies: Mapping[str, str]) -> str:
    """Name the nodes whose kubelet could not be read for the whole timeout, by what to do about it."""
    silent = {name: error for name, error in errors.items() if name not in remedies}
    parts = [f"Kubelet did not respond for 1 min: {_errors(silent)}. {_start(next(iter(silent)))}"] if silent else []
    for remedy in dict.fromkeys(remedies[name] for name in errors if name in remedies):
        refused = {name: error for name, error in errors.items() if remedies.get(name) == remedy}
        parts.append(f"Kubelet could not be read for 1 min: {_errors(refused)}. {remedy}")
    return ". ".join(parts)


def _start(node: str) -> str:
    """Return the remedies for the first node whose kubelet does not respond."""
    return ". ".join(map(str, not_ready_ways_out(node.removeprefix("node "))))


def endpoints_failed(errors: Mapping[str, str]) -> str:
    """Name the endpoints whose certificate could not be read for the whole timeout."""
    return f"API server certificate could not be read for 1 min: {_errors(errors)}. Check the kube-apiserver there"


def pending(*, kubelets: Mapping[str, str], endpoints: Mapping[str, str], unprobed: int) -> str:
    """Name what the checks wait for."""
    parts = [f"the kubelet of {_first(kubelets)}"] if kubelets else []
    parts += [f"the certificate of {_first(endpoints)}"] if endpoints else []
    parts += [f"{unprobed} more responses"] if unprobed else []
    return f"Checking nodes and API servers: waiting for {' and '.join(parts)}"


def _pairs(details: Mapping[str, str]) -> str:
    return ", ".join(f"{name} ({detail})" for name, detail in details.items())


def _errors(errors: Mapping[str, str]) -> str:
    if len(errors) <= MAX_REASONS:
        return _pairs(errors)
    first = "; ".join(list(errors.values())[:MAX_REASONS])
    return f"{', '.join(errors)} (first errors: {first})"


def _first(errors: Mapping[str, str]) -> str:
    shown = dict(list(errors.items())[:MAX_REASONS])
    more = len(errors) - len(shown)
    return _pairs(shown) + (f" and {more} more" if more else "")
