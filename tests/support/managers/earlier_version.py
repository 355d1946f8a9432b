"""The requests of the version before the uid label: created objects have ownerReferences, and are found by name.

That version gave every object that it created the plan's name and the component as labels, and the plan as controlling
owner. Its plans had no label.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hack.faults.forwarding import Forwarding
from upgrade_manager.api.keys import LABEL_ACTIVE, LABEL_PLAN, LABEL_PLAN_UID
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.transport import Request, Transport
from upgrade_manager.resources.owner import Owner

_LEASES = "/leases"


class EarlierVersion(Forwarding):
    """A transport of a manager that makes its requests those of the earlier version."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        #: By uid: names of the plans for which objects were created.
        self._names: dict[str, str] = {}

    def outgoing(self, request: Request) -> Request:
        """Return the request of the earlier version."""
        request = replace(request, query=tuple((key, self._selector(key, value)) for key, value in request.query))
        if request.method not in {"POST", "PATCH"} or not request.body or _LEASES in request.path:
            return request
        body = json.loads(request.body)
        if isinstance(body, list):
            return request
        if request.method == "POST":
            self._create(body)
        else:
            _patch(body)
        return replace(request, body=json.dumps(body).encode())

    def _create(self, body: Object) -> None:
        """Make a created object one of the earlier version's."""
        labels = objects.labels(body)
        uid = labels.pop(LABEL_PLAN_UID, "")
        if not uid:
            return
        self._names[uid] = labels[LABEL_PLAN]
        body["metadata"]["ownerReferences"] = [Owner(name=labels[LABEL_PLAN], uid=uid).reference()]
        template: dict[str, Any] = objects.spec(body).get("template") or {}
        objects.labels(template).pop(LABEL_PLAN_UID, None)

    def _selector(self, key: str, value: str) -> str:
        """Select by the plan's name, which these tests keep short, instead of its uid."""
        if key != "labelSelector":
            return value
        uids = [part.removeprefix(f"{LABEL_PLAN_UID}=") for part in value.split(",")]
        uid = next((one for one in uids if one in self._names), "upgrade")
        parts = value.split(",")
        wanted = f"{LABEL_PLAN}={self._names.get(uid, 'upgrade')}"
        return ",".join(wanted if part.startswith(f"{LABEL_PLAN_UID}=") else part for part in parts)


def _patch(body: Object) -> None:
    """Leave out the label of the active plan, and the removal of a resumed Job's owner."""
    metadata = objects.metadata(body)
    labels = metadata.get("labels") or {}
    if LABEL_ACTIVE in labels:
        del labels[LABEL_ACTIVE]
    if metadata.get("ownerReferences", "") is None and "suspend" in objects.spec(body):
        del metadata["ownerReferences"]
