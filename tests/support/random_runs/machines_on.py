"""The VMs of a random run that were on: each is on in the end, or a plan or an event has said that it is off."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hack.cluster.seed_machines import machines_of
from upgrade_manager.api.phases import TERMINAL
from upgrade_manager.facts.vm_start import runs
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import EVENTS, VIRTUAL_MACHINE_INSTANCES
from upgrade_manager.pipeline.ending import passing_on
from upgrade_manager.pipeline.node_upgrade import vm_restore

if TYPE_CHECKING:
    from hack.apiserver.history import Entry
    from hack.simulation import Simulation

_PLANS = "upgradeplans.management.harvesterhci.io"
#: Reasons of events that name VMs that are off.
_SAY_OFF = {"VMsOff", vm_restore.EVENT_REASON, passing_on.EVENT_REASON}
#: A VM's namespace and name in a text.
_MACHINE = re.compile(r"[a-z0-9-]+/[a-z0-9-]+")


class MachinesOn:
    """Reads conditions and next steps of plans that have ended, because a user may delete such a plan."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._texts: set[str] = set()
        simulation.server.storage.observers.append(self._changed)

    def _changed(self, collection: str, entry: Entry) -> None:
        status = objects.status(entry.stored.object) if collection == _PLANS else {}
        if status.get("currentPhase") in TERMINAL:
            self._texts.update(one["message"] for one in status.get("conditions") or ())
            self._texts.update(one["text"] for one in status.get("nextSteps") or ())

    async def missing(self, *, drained_by_hand: str = "") -> list[str]:
        """Return one sentence for each VM that is off and that nothing names.

        Rancher evicts the VMs of a node whose hook a user has answered: nothing of the upgrade has stopped these VMs.
        """
        client, machines = self._simulation.client(), machines_of(self._simulation.scenario)
        on = [one for one in machines if one.run_strategy != "Halted" and one.node != drained_by_hand]
        instances = (await client.list(VIRTUAL_MACHINE_INSTANCES)).items
        running = {objects.qualified_name(one) for one in instances if runs(one)}
        events = (await client.list(EVENTS)).items
        texts = [*self._texts, *(event["message"] for event in events if event["reason"] in _SAY_OFF)]
        named = set(_MACHINE.findall(" ".join(texts)))
        found = {f"{one.namespace}/{one.name}" for one in on} - running - named
        return [f"VM {name} was on, is off, and is not named" for name in sorted(found)]
