"""Names and label values of the objects that the manager creates, and references to images.

Names of plans and nodes have up to 253 characters and may contain dots; label values have up to 63, and Service names
no dots. Shortening follows wrangler's `SafeConcatName`, which the toolkit image and Rancher use too.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from upgrade_manager.api.keys import HARVESTER_SYSTEM, Component

if TYPE_CHECKING:
    from upgrade_manager.api.keys import JobType

#: Length of a DNS label and of a label value.
MAX_LABEL = 63
#: Length of a DNS subdomain, the format of most names.
MAX_NAME = 253
#: Length of the digest at the end of the name of a plan's event.
EVENT_DIGEST = 16

#: The end of the name of a plan's history.
HISTORY_SUFFIX = "-history"

#: The number of an attempt of a plan without a recorded number.
FIRST_ATTEMPT = 1
#: Names that are remembered: each reconcile needs those of the plan's objects and nodes again.
_REMEMBERED = 4096
_KEPT = 57
_LETTERS_AND_DIGITS = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789")
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?", re.ASCII)
#: A DNS label and a DNS subdomain, in a syntax that Go shares.
NAMESPACE_PATTERN = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
NAME_PATTERN = rf"{NAMESPACE_PATTERN}(?:\.{NAMESPACE_PATTERN})*"
_NAMESPACE = re.compile(NAMESPACE_PATTERN, re.ASCII)
_OBJECT_NAME = re.compile(NAME_PATTERN, re.ASCII)
_DNS_LABEL = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?", re.ASCII)


def is_object_name(text: str) -> bool:
    """Return True for a valid object name (a DNS subdomain). Checked before user input gets into a URL."""
    return len(text) <= MAX_NAME and _OBJECT_NAME.fullmatch(text) is not None


def is_namespace(text: str) -> bool:
    """Return True for a valid namespace name (a DNS label)."""
    return len(text) <= MAX_LABEL and _NAMESPACE.fullmatch(text) is not None


def safe_concat_name(*parts: str) -> str:
    """Join the parts by hyphens, shortened to 63 bytes (wrangler's pkg/name).

    Up to 63 bytes the result is the plain join. A longer one keeps 57 bytes, followed by a hyphen and 5 hex digits of
    its SHA-256; if the 57th byte is not a lower-case letter or digit, it keeps 56 bytes and gets 6 digits.
    """
    joined = "-".join(parts)
    raw = joined.encode()
    if len(raw) <= MAX_LABEL:
        return joined
    digest = sha256(raw).hexdigest()
    kept = _KEPT if raw[_KEPT - 1] in _LETTERS_AND_DIGITS else _KEPT - 1
    return f"{raw[:kept].decode(errors='ignore')}-{digest[: MAX_LABEL - 1 - kept]}"


@lru_cache(maxsize=_REMEMBERED)
def label_value(name: str) -> str:
    """Return a valid label value for a name: the name itself if valid, else shortened, else a hash.

    Labels and selectors both use this function, so lookups work for every name.
    """
    short = safe_concat_name(name)
    if len(short) <= MAX_LABEL and _LABEL_VALUE.fullmatch(short):
        return short
    return sha256(name.encode()).hexdigest()[:MAX_LABEL]


def dns_label(name: str) -> str:
    """Return a valid Service name (RFC 1035 label): the name itself if valid, else with hyphens and a hash.

    The hash keeps the Services of plans `v1.8.0` and `v1-8-0` apart.
    """
    if len(name) <= MAX_LABEL and _DNS_LABEL.fullmatch(name):
        return name
    digest = sha256(name.encode()).hexdigest()[:6]
    cleaned = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if not cleaned[:1].isalpha():
        cleaned = f"x-{cleaned}"
    head = cleaned[: _KEPT - 1].rstrip("-")
    return f"{head}-{digest}"


@lru_cache(maxsize=_REMEMBERED)
def component_name(
    plan: str, component: Component, *, job_type: JobType | None = None, node: str = "", attempt: int = FIRST_ATTEMPT
) -> str:
    """Return `PLAN-COMPONENT`, or `PLAN-COMPONENT-JOBTYPE-NODE` for a node's Job, shortened to 63 bytes.

    Names of later attempts of the plan end in `-aN`, so that the Jobs of earlier ones may stay.
    """
    parts = [plan, str(component)]
    if job_type is not None:
        parts += [str(job_type), node]
    if attempt > FIRST_ATTEMPT:
        parts.append(f"a{attempt}")
    return safe_concat_name(*parts)


@lru_cache(maxsize=_REMEMBERED)
def repo_service_name(plan: str) -> str:
    """Return the name of the repository's Service: `PLAN-repo` as a DNS label."""
    return dns_label(component_name(plan, Component.REPO))


def image_display_name(plan: str, version: str) -> str:
    """Return the display name of the ISO's image; Harvester uses it as a label value."""
    return label_value(f"{plan}-{version}")


def restore_vm_config_map(plan: str) -> str:
    """Return the name of the ConfigMap that lists the VMs to restart, by node.

    The toolkit writes it under the plain name; only a name that is too long is shortened.
    """
    name = f"{plan}-restore-vm"
    return name if len(name) <= MAX_NAME else safe_concat_name(plan, "restore-vm")


def ledger_config_map(plan: str) -> str:
    """Return the name of the ConfigMap in which the toolkit's Jobs record what they change."""
    name = f"{plan}-ledger"
    return name if len(name) <= MAX_NAME else safe_concat_name(plan, "ledger")


def history_config_map(plan: str) -> str:
    """Return the name of the ConfigMap with the plan's history; the manager's policy knows it by its end."""
    name = f"{plan}{HISTORY_SUFFIX}"
    return name if len(name) <= MAX_NAME else f"{safe_concat_name(plan, 'x' * MAX_LABEL)}{HISTORY_SUFFIX}"


class ImageReference(NamedTuple):
    """Reference to a VirtualMachineImage, as in `spec.image`."""

    namespace: str
    name: str

    @classmethod
    def parse(cls, text: str) -> ImageReference | None:
        """Parse `NAME` or `NAMESPACE/NAME`; None if a name is invalid."""
        namespace, slash, name = text.rpartition("/")
        if not slash:
            namespace = HARVESTER_SYSTEM
        return cls(namespace, name) if is_namespace(namespace) and is_object_name(name) else None


def image_problem(image: str) -> str:
    """Return why no plan can use an image of that name, and what to do; empty if one can."""
    reference = ImageReference.parse(image)
    if reference is None:
        return (
            f"{image!r} is not a valid VirtualMachineImage name. Create a plan with the NAME of an image in "
            f"{HARVESTER_SYSTEM}"
        )
    if reference.namespace == HARVESTER_SYSTEM:
        return ""
    return (
        f"VirtualMachineImage {image}: the upgrade repository can only mount images in namespace {HARVESTER_SYSTEM}. "
        "Import the ISO there, then create a plan with that image"
    )


def of_attempt(what: str, attempt: int) -> str:
    """Return what an event records once in an attempt."""
    return f"{what}/attempt {attempt}" if attempt > FIRST_ATTEMPT else what


def event_digest(uid: str, what: str) -> str:
    """Return the end of the name of a plan's event: the plan's uid and what is recorded once, such as reason/node."""
    return sha256(f"{uid}/{what}".encode(errors="replace")).hexdigest()[:EVENT_DIGEST]
