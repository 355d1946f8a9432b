"""A scenario whose faults the test can repair while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from pydantic import PrivateAttr

from hack.cluster import scenario as scenarios
from hack.cluster.scenario import Scenario

if TYPE_CHECKING:
    from hack.cluster.scenario import Fault

#: The second node that Rancher takes, with seed 0.
SECOND = "node-2"
#: The termination message of a container that fails.
WORDS = "first line\nthe last words"
#: The system-upgrade-controller retries a hundred times by default, for hours.
_FEW_RETRIES = {"backoff_limit": 1}


def fault(work: str, node: str = "") -> dict[str, Any]:
    """Return scenario changes that make containers with that work fail, on one node or all."""
    return {"faults": [{"work": work, "node": node, "message": WORDS}], "upgrade_controller": _FEW_RETRIES}


class RepairableScenario(Scenario):
    """A scenario whose containers succeed after `repair`."""

    _is_repaired: bool = PrivateAttr(default=False)

    @classmethod
    def of(cls, name: str = "three-nodes", **faults: Any) -> Self:
        """Load the scenario of that name with these changes."""
        return cls.model_validate(scenarios.load(name).changed(**faults).model_dump())

    def repair(self) -> None:
        """Repair all faults."""
        self._is_repaired = True

    def fault_of(self, work: str, node: str) -> Fault | None:
        """Return None after the repair."""
        return None if self._is_repaired else super().fault_of(work, node)
