"""Names of the objects that we create, and label values made of names.

An UpgradePlan's and a Node's name may have 253 characters and dots in it. Names of ours and label values may have 63,
and a Service's name no dots. Shortening follows wrangler's `SafeConcatName`, because the published toolkit image and
Rancher's controllers find objects by names made with it.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import HARVESTER_SYSTEM, Component

if TYPE_CHECKING:
    from upgrade_manager.api.keys import JobType

#: The length of a DNS label, and of a label's value.
MAX_LABEL = 63
#: The length of a DNS subdomain, which most objects' names are.
MAX_NAME = 253

_KEPT = 57
_LETTERS_AND_DIGITS = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789")
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?", re.ASCII)
_NAMESPACE = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?", re.ASCII)
_OBJECT_NAME = re.compile(rf"{_NAMESPACE.pattern}(?:\.{_NAMESPACE.pattern})*", re.ASCII)
_DNS_LABEL = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?", re.ASCII)


def is_object_name(text: str) -> bool:
    """Whether an object may have that name (a DNS subdomain); texts of users are asked before they get into a URL."""
    return len(text) <= MAX_NAME and _OBJECT_NAME.fullmatch(text) is not None


def is_namespace(text: str) -> bool:
    """Whether a namespace may have that name (a DNS label)."""
    return len(text) <= MAX_LABEL and _NAMESPACE.fullmatch(text) is not None


def safe_concat_name(*parts: str) -> str:
    """The parts joined by hyphens, in 63 bytes at most (wrangler's pkg/name).

    Up to 63 bytes nothing is changed or cleaned, and an empty part leaves its two hyphens. A longer text keeps its
    first 57 bytes and gets a hyphen and 5 hex digits of its SHA-256; where the 57th byte is no lower-case letter or
    digit it keeps 56 and gets 6. Made of valid object names, the result is a valid object name. A character outside
    ASCII that the cut goes through is dropped; Kubernetes has no such names.
    """
    joined = "-".join(parts)
    raw = joined.encode()
    if len(raw) <= MAX_LABEL:
        return joined
    digest = sha256(raw).hexdigest()
    kept = _KEPT if raw[_KEPT - 1] in _LETTERS_AND_DIGITS else _KEPT - 1
    return f"{raw[:kept].decode(errors='ignore')}-{digest[: MAX_LABEL - 1 - kept]}"


def label_value(name: str) -> str:
    """A valid label value for an object of that name: the name itself where it is one, else a shortened name.

    Both sides of a lookup, the label's writer and the selector, go through here. The shortened value starts as the
    name does and ends in hex digits, so it is valid even where the cut falls behind a dot or a hyphen. A text that is
    no object's name and cannot be made to look like one becomes a hash of itself: never an error, never ambiguous.
    """
    short = safe_concat_name(name)
    if len(short) <= MAX_LABEL and _LABEL_VALUE.fullmatch(short):
        return short
    return sha256(name.encode()).hexdigest()[:MAX_LABEL]


def dns_label(name: str) -> str:
    """A valid Service name (RFC 1035 label) for that name: itself where it is one already.

    A plan may be called `v1.8.0`, but a Service may not: dots are refused, and so is a leading digit. Such a name gets
    hyphens instead, and six hex digits of its hash, so that the plans `v1.8.0` and `v1-8-0` do not claim one Service.
    """
    if len(name) <= MAX_LABEL and _DNS_LABEL.fullmatch(name):
        return name
    digest = sha256(name.encode()).hexdigest()[:6]
    cleaned = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if not cleaned[:1].isalpha():
        cleaned = f"x-{cleaned}"
    head = cleaned[: _KEPT - 1].rstrip("-")
    return f"{head}-{digest}"


def component_name(plan: str, component: Component, *, job_type: JobType | None = None, node: str = "") -> str:
    """`<plan>-<component>`, and for a node's Job `<plan>-<component>-<job type>-<node>`, shortened to 63 bytes."""
    parts = [plan, str(component)]
    if job_type is not None:
        parts += [str(job_type), node]
    return safe_concat_name(*parts)


def repo_service_name(plan: str) -> str:
    """The Service of the plan's repository: `<plan>-repo`, made a DNS label where the plan's name has dots in it."""
    return dns_label(component_name(plan, Component.REPO))


def repo_url(plan: str) -> str:
    """Where the plan's repository answers inside the cluster, without a trailing slash."""
    return f"http://{repo_service_name(plan)}.{HARVESTER_SYSTEM}"


def image_display_name(plan: str, version: str) -> str:
    """The display name of the ISO's image, `<plan>-<version>`; Harvester makes a label's value of it."""
    return label_value(f"{plan}-{version}")


def restore_vm_config_map(plan: str) -> str:
    """The ConfigMap that lists the VMs to start again, by node.

    The toolkit writes it under the unshortened name; only a name that no object can have is shortened.
    """
    name = f"{plan}-restore-vm"
    return name if len(name) <= MAX_NAME else safe_concat_name(plan, "restore-vm")
