"""Required node affinity of Pods, evaluated as kube-scheduler does, for all nodes at once.

live_migration.py evaluates the affinity of VMs by this module.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from upgrade_manager.kube.objects import Object

#: An integer in the format of Go's strconv.ParseInt.
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_INT64 = range(-(1 << 63), 1 << 63)


class NodeSet:
    """Nodes as bits of an integer, so that an expression is evaluated once for all nodes."""

    def __init__(self, nodes: Sequence[Object]) -> None:
        self._names = {objects.name(node): 1 << index for index, node in enumerate(nodes)}
        self._all = (1 << len(nodes)) - 1
        #: The bits of the nodes by label and value.
        self._labels: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for index, node in enumerate(nodes):
            for key, label in objects.strings(node, "metadata", "labels").items():
                self._labels[key][label] |= 1 << index

    def without(self, name: str) -> int:
        """Return all nodes except one."""
        return self._all & ~self._names.get(name, 0)

    def matching(self, affinity: object) -> int:
        """Return the nodes that match at least one term of a NodeSelector."""
        found = 0
        for term in objects.items(affinity, "nodeSelectorTerms"):
            found |= self._term(term)
        return found

    def _term(self, term: object) -> int:
        """Return the nodes that match all requirements of the term; an empty term matches no node."""
        expressions, names = objects.items(term, "matchExpressions"), objects.items(term, "matchFields")
        found = self._all if expressions or names else 0
        for one in expressions:
            found &= self._by_label(one)
        for one in names:
            found &= self._by_name(one)
        return found

    def _by_label(self, requirement: object) -> int:
        """Return the nodes that match; none if the requirement is invalid."""
        nodes = self._labels.get(objects.text(requirement, "key"), {})
        operator, values = objects.text(requirement, "operator"), _values(requirement)
        match operator, len(values):
            case "In", count if count:
                return _union(nodes, values)
            case "NotIn", count if count:
                return self._all & ~_union(nodes, values)
            case "Exists", 0:
                return _union(nodes, nodes)
            case "DoesNotExist", 0:
                return self._all & ~_union(nodes, nodes)
            case "Gt" | "Lt", 1:
                return _union(nodes, [label for label in nodes if _compare(label, operator, values[0])])
        return 0

    def _by_name(self, requirement: object) -> int:
        """Return the nodes that match; the only field of nodes is metadata.name."""
        nodes = self._names if objects.text(requirement, "key") == "metadata.name" else {}
        match objects.text(requirement, "operator"), _values(requirement):
            case "In", [name]:
                return nodes.get(name, 0)
            case "NotIn", [name]:
                return self._all & ~nodes.get(name, 0)
        return 0


def _values(requirement: object) -> list[Any]:
    """Return the requirement's values; a value of another type equals no label."""
    return [value if isinstance(value, str) else "\0" for value in objects.items(requirement, "values")]


def _union(nodes: Mapping[str, int], values: Any) -> int:
    found = 0
    for value in values:
        found |= nodes.get(value, 0)
    return found


def _compare(label: str, operator: str, bound: str) -> bool:
    left, right = _integer(label), _integer(bound)
    if left is None or right is None:
        return False
    return left > right if operator == "Gt" else left < right


def _integer(text: str) -> int | None:
    number = int(text) if _INTEGER.fullmatch(text) else None
    return number if number is not None and number in _INT64 else None
