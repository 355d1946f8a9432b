"""A scenario whose faults can be repaired while it plays, as an administrator would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from pydantic import PrivateAttr

from hack.cluster import scenario as scenarios
from hack.cluster.scenario import Scenario

if TYPE_CHECKING:
    from hack.cluster.scenario import Fault

#: The second node that Rancher takes, with seed 0.
SECOND = "node-2"
#: What a container says before it fails.
WORDS = "first line\nthe last words"
#: The controller as shipped tries a hundred times; that takes hours and shows nothing more.
_IMPATIENT = {"backoff_limit": 1}


def fault(work: str, node: str = "") -> dict[str, Any]:
    """The changes of a scenario in which the containers with that work fail, on one node or everywhere."""
    return {"faults": [{"work": work, "node": node, "message": WORDS}], "upgrade_controller": _IMPATIENT}


class RepairableScenario(Scenario):
    """Containers stop to fail once `cure` was called."""

    _is_repaired: bool = PrivateAttr(default=False)

    @classmethod
    def of(cls, name: str = "three-nodes", **faults: Any) -> Self:
        """The scenario of that name with these changes."""
        return cls.model_validate(scenarios.load(name).changed(**faults).model_dump())

    def repair(self) -> None:
        """Repair whatever made containers fail."""
        self._is_repaired = True

    def fault_of(self, work: str, node: str) -> Fault | None:
        """None once they are repaired."""
        return None if self._is_repaired else super().fault_of(work, node)
