"""The state that Harvester reports for an Addon.

The webhook (webhook/checks/addons.py) and the cluster upgrade (toolkit/charts/addons.py) show it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube import objects

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object


def named(addon: Object) -> str:
    """Return the add-on in messages."""
    return f"Addon {objects.qualified_name(addon)}"


def state(addon: Object) -> str:
    """Return the add-on's state, with the reason of a failed operation."""
    found = objects.text(addon, "status", "status") or "not deployed"
    reason = objects.excerpt(objects.condition(addon, "OperationFailed"), "message")
    return f"{found}: {reason}" if reason else found
