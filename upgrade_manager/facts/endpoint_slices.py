"""The ready endpoints of a Service: of the upgrade repository, and of the webhook for `upgrade-manager check`.

pipeline/phases/repository.py, pipeline/predicates.py and cli/installation/webhooks.py count them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object


def ready_endpoints(endpoint_slice: Object) -> int:
    """Return the number of ready endpoints; as the API defines, an endpoint without the condition counts as ready."""
    endpoints = objects.items(endpoint_slice, "endpoints")
    return sum(objects.value(one, "conditions", "ready") is not False for one in endpoints)
