"""Kind, namespace and name of an object as one text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube.objects import name, namespace

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object


def title(obj: Object) -> str:
    """`Job harvester-system/x`, `Node n1`."""
    return f"{obj['kind']} {namespace(obj) + '/' if namespace(obj) else ''}{name(obj)}"
