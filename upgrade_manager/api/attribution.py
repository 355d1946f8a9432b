"""The user who last changed what steers an upgrade, as the annotation `last-changed-by` records it.

The annotation is `USER HASH`. The mutating webhook (`webhook/mutation.py`) sets it to the user of the request. The
admission policy (deploy/admission-policies) admits a new value only with the name of the user of the request. The hash
shows that no later change has passed the webhook by while it was down: the manager names the user only where it fits.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from upgrade_manager.api.annotations import WAIVER_ANNOTATIONS
from upgrade_manager.api.keys import ANNOTATION_CONTINUE, ANNOTATION_LAST_CHANGED_BY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from upgrade_manager.api.spec import UpgradePlanSpec

#: The user in messages where the annotation is absent or does not fit.
NOT_RECORDED = "not recorded"

#: The hashed fields of the spec. A row adds a field, here and to the condition in deploy/webhook/mutating.yaml. A value
#: that is false or empty counts as absent, so that a new row keeps the hashes of plans without it.
FIELDS: Mapping[str, Callable[[UpgradePlanSpec], object]] = {
    "spec.attempt": lambda spec: spec.attempt if (spec.attempt or 1) > 1 else None,
    "spec.force": lambda spec: spec.force,
    "spec.paused": lambda spec: spec.paused,
    "spec.nodeUpgradeOption.onMigrationFailure": lambda spec: spec.node_upgrade_option.on_migration_failure,
    "spec.nodeUpgradeOption.pauseAfter": lambda spec: spec.node_upgrade_option.pause_after,
    "spec.nodeUpgradeOption.pauseBefore": lambda spec: sorted(set(spec.node_upgrade_option.pause_before)),
    "spec.nodeUpgradeOption.pauseNodes": lambda spec: sorted(set(spec.node_upgrade_option.pause_nodes)),
}
#: The hashed annotations.
ANNOTATIONS = (ANNOTATION_CONTINUE, *WAIVER_ANNOTATIONS)


def digest(spec: UpgradePlanSpec, annotations: Mapping[str, str]) -> str:
    """Return the hash of what is recorded; the order of names, and the rest of the plan, do not change it."""
    values = {name: value for name, read in FIELDS.items() if (value := read(spec))}
    values |= {key: annotations[key] for key in ANNOTATIONS if key in annotations}
    return hashlib.sha256(json.dumps(values, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def signed(user: str, spec: UpgradePlanSpec, annotations: Mapping[str, str]) -> str:
    """Return the annotation's value for a change by the user."""
    return f"{user} {digest(spec, annotations)}"


def last_changed_by(spec: UpgradePlanSpec, annotations: Mapping[str, str]) -> str:
    """Return the user who last changed the plan, or NOT_RECORDED."""
    # The name may contain spaces.
    user, _, recorded = annotations.get(ANNOTATION_LAST_CHANGED_BY, "").rpartition(" ")
    return user if user and recorded == digest(spec, annotations) else NOT_RECORDED
