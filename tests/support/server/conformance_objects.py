"""Objects and responses that several rows of the conformance table share."""

from __future__ import annotations

from typing import Any

from tests.support.server.conformance_rows import delete, post, refused
from tests.support.server.shapes import WIDGETS, widget

MAPS = "/api/v1/namespaces/$ns/configmaps"
MAP = f"{MAPS}/one"
NODES = "/api/v1/nodes"
NODE = f"{NODES}/$word"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/$ns/leases"
LEASE = f"{LEASES}/one"
DEPLOYMENTS = "/apis/apps/v1/namespaces/$ns/deployments"
JOBS = "/apis/batch/v1/namespaces/$ns/jobs"
WIDGET = f"{WIDGETS}/one"
#: Their group-qualified plural and kind.
WIDGETS_KIND = "widgets.shapes.example.io"
WIDGET_KIND = "Widget.shapes.example.io"


def with_metadata(obj: dict[str, Any], **metadata: object) -> dict[str, Any]:
    """Return the object with the name "one" and that metadata."""
    return obj | {"metadata": {"name": "one"} | metadata}


ONE = (post(MAPS, with_metadata({})),)
HELD = (post(MAPS, with_metadata({}, finalizers=["a.io/b"])),)
DYING = (*HELD, delete(MAP))
CUSTOM = (post(WIDGETS, widget()),)
CUSTOM_HELD = (post(WIDGETS, with_metadata(widget(), finalizers=["a.io/b"])),)
#: The resourceVersion of the first object.
NOW = "$0.metadata.resourceVersion"
#: The whole metadata of a namespaced custom object.
SYSTEM_METADATA = {
    "creationTimestamp": "$time",
    "generation": 1,
    "name": "one",
    "namespace": "$ns",
    "resourceVersion": "$version",
    "uid": "$uid",
}
#: Cause of a refused update.
NO_VERSION = ("metadata.resourceVersion", "Invalid value: 0: must be specified for an update")
#: Causes of a refused value.
BLUE = ("spec.colour", 'Unsupported value: "blue": supported values: "red", "green"')
TYPE = "FieldValueTypeInvalid"
UNSUPPORTED_PATCH = refused(
    415,
    "UnsupportedMediaType",
    "the body of the request was in an unknown format - accepted media types include: "
    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
)
