"""The words in which the checks are told: every failure is named, however many there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import ANNOTATION_SKIP_DISK_CHECK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Of so many that are silent the reasons are told; of any more only the names, for a condition's length is limited.
TOLD = 3


def too_full(verdicts: Mapping[str, str]) -> str:
    """The disks that do not take the new images, by node."""
    named = ", ".join(f"{node} ({verdict})" for node, verdict in verdicts.items())
    return (
        "not enough disk space: with 13 GiB of new images, more than the kubelet's imageGCHighThresholdPercent "
        f"would be in use on {named}; free space there, or skip this check by annotation "
        f'{ANNOTATION_SKIP_DISK_CHECK}: "true"'
    )


def short_lived(verdicts: Mapping[str, str], *, days: int) -> str:
    """The certificates that do not last, by endpoint."""
    named = ", ".join(f"{endpoint} ({verdict})" for endpoint, verdict in verdicts.items())
    wanted = "1 day" if days == 1 else f"{days} days"
    return (
        f"API server certificates must be valid for another {wanted}, which these are not: {named}; renew them, for "
        "which RKE2 has to be restarted on their nodes"
    )


def silent_kubelets(reasons: Mapping[str, str]) -> str:
    """The nodes that did not answer for a minute."""
    return f"no kubelet answered for a minute on {_named(reasons)}; see that these nodes are up"


def silent_endpoints(reasons: Mapping[str, str]) -> str:
    """The endpoints of which no usable certificate was to be had for a minute."""
    return f"no valid certificate could be read for a minute from API server {_named(reasons)}"


def waits(*, kubelets: Mapping[str, str], endpoints: Mapping[str, str], unasked: int) -> str:
    """What the checks wait for."""
    parts = [f"an answer of the kubelet on {_some(kubelets)}"] if kubelets else []
    parts += [f"a valid certificate of API server {_some(endpoints)}"] if endpoints else []
    parts += [f"{unasked} more answers"] if unasked else []
    return f"waiting for {' and '.join(parts)}"


def _named(reasons: Mapping[str, str]) -> str:
    if len(reasons) <= TOLD:
        return ", ".join(f"{name} ({reason})" for name, reason in reasons.items())
    first = "; ".join(list(reasons.values())[:TOLD])
    return f"{', '.join(reasons)} (the first: {first})"


def _some(reasons: Mapping[str, str]) -> str:
    told: Sequence[str] = [f"{name} ({reason})" for name, reason in list(reasons.items())[:TOLD]]
    more = len(reasons) - len(told)
    return ", ".join(told) + (f" and {more} more" if more else "")
