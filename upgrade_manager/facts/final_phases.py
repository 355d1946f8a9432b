"""The phases in which a Pod, a VirtualMachineInstance or a migration has ended; the three kinds share the names."""

from __future__ import annotations

from upgrade_manager.kube import objects

FINAL_PHASES = frozenset({"Succeeded", "Failed"})


def is_final(obj: object) -> bool:
    """Return True for an object that has ended and never runs again."""
    return objects.text(obj, "status", "phase") in FINAL_PHASES
