"""Admission webhooks that refuse writes of the manager for a while."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hack.faults.rules import Match, Refuse, Rule

if TYPE_CHECKING:
    from tests.support.managers.upgrade import UpgradeRun
    from tests.support.random_runs.interference import Interference

#: Responses of webhooks, by status.
REASONS = {400: "BadRequest", 403: "Forbidden", 409: "Conflict", 422: "Invalid"}
_ANY = ("create", "update", "patch", "delete", "deletecollection")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Writes that a webhook refuses."""

    resources: tuple[str, ...]
    verbs: tuple[str, ...] = _ANY

    async def __call__(self, stage: UpgradeRun, act: Interference) -> None:
        """Refuse them for the time and with the status of the act."""
        refuse = Refuse(status=act.status, reason=REASONS[act.status], message="a webhook refuses it")
        rules = [Rule(match=Match(verbs=self.verbs, resource=one), action=refuse) for one in self.resources]
        for rule in rules:
            stage.simulation.middleware.add(rule)
        try:
            await asyncio.sleep(act.lasts)
        finally:
            for rule in rules:
                stage.simulation.middleware.remove(rule)


#: Every kind that the manager writes, except leases and events: without its lease a manager exits.
REFUSALS = {
    "settings refused": Refusal(resources=("addons.*", "settings.longhorn.io"), verbs=("patch",)),
    "cluster refused": Refusal(resources=("clusters.provisioning.cattle.io",)),
    "Jobs refused": Refusal(resources=("jobs.batch",)),
    "nodes refused": Refusal(resources=("nodes",)),
    "Secrets refused": Refusal(resources=("secrets",)),
    "plan refused": Refusal(resources=("upgradeplans.*",)),
    "Plans of nodes refused": Refusal(resources=("plans.upgrade.cattle.io",)),
    "repository refused": Refusal(resources=("deployments.apps", "services", "virtualmachineimages.*")),
    "ConfigMaps refused": Refusal(resources=("configmaps",)),
    "creations refused": Refusal(resources=("[!el]*",), verbs=("create",)),
    "changes refused": Refusal(resources=("[!el]*",), verbs=("patch", "update")),
    "deletions refused": Refusal(resources=("[!el]*",), verbs=("delete", "deletecollection")),
}
