"""Harvester's admission webhook for Nodes: refuses to cordon the last schedulable node.

The rule is that of harvester/harvester v1.7.1, pkg/webhook/resources/node/validator.go; it has no exception for
controllers. The embedded API server has it built in. The real one has not: no webhook is served for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.apiserver.status import bad_request
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import NODES

if TYPE_CHECKING:
    from hack.apiserver.admission import Operation, WriteOptions
    from hack.apiserver.resources import Row
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.store import Store

_MAINTENANCE = "harvesterhci.io/maintain-status"
_REFUSAL = (
    'admission webhook "validator.harvesterhci.io" denied the request: can\'t enable maintenance mode or cordon on the'
    " last available node"
)


class NodeValidator:
    """A validating stage; it knows the other nodes from a cache, as the webhook does."""

    def __init__(self, nodes: Store) -> None:
        self._nodes = nodes

    def __call__(
        self, row: Row, new: Object, old: Object | None, operation: Operation, options: WriteOptions
    ) -> Object:
        """Refuse the cordon of the last available node."""
        is_cordon = operation == "UPDATE" and row.resource == NODES and not options.subresource
        if is_cordon and _is_available(old or {}) and not _is_available(new):
            others = (one for one in self._nodes.list() if objects.name(one) != objects.name(new))
            if not any(map(_is_available, others)):
                raise bad_request(_REFUSAL)
        return new


def _is_available(node: Object) -> bool:
    return not objects.spec(node).get("unschedulable") and _MAINTENANCE not in objects.annotations_of(node)
