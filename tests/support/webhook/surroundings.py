"""The checks of `upgrade-manager preflight` on a simulated cluster, with servers of ISOs."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from hack.cluster.impersonation import ActingAs
from hack.simulation import Simulation
from tests.support.cluster.preflight import VirtualClock
from tests.support.managers.toolkit_config import TOOLKIT
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.preflight.kubelets import DirectKubelets, KubeletReader
from webhook.preflight.gate import Report, Surroundings, check
from webhook.preflight.iso_server import IsoResponse, Unreachable

ISO_SIZE = 7 << 30


@dataclass
class IsoServers:
    """The servers of ISOs: each has every file, or the response or the error of its URL."""

    responses: dict[str, IsoResponse | str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def ask(self, url: str) -> IsoResponse:
        self.asked.append(url)
        found = self.responses.get(url, IsoResponse(status=200, size=ISO_SIZE))
        if isinstance(found, str):
            raise Unreachable(found)
        return found


def plan_of(spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    """Return a plan as a user writes it."""
    head = {"apiVersion": UPGRADE_PLANS.api_version, "kind": UPGRADE_PLANS.kind}
    return {**head, "metadata": {"name": "demo", **metadata}, "spec": spec}


async def gate(
    simulation: Simulation,
    plan: dict[str, Any],
    *,
    iso: IsoServers | None = None,
    kubelets: KubeletReader | None = None,
    client: Client | None = None,
    waits: list[str] | None = None,
    skip_iso: bool = False,
) -> Report:
    """Run the checks of a plan, by default as an administrator."""
    around = Surroundings(
        certificates=simulation.certificates,
        kubelets=kubelets or DirectKubelets(simulation.kubelets),
        iso=iso or IsoServers(),
        clock=VirtualClock(),
        on_wait=(waits if waits is not None else []).append,
    )
    return await check(plan, client or simulation.client(), TOOLKIT, around, skip_iso=skip_iso)


def as_user(simulation: Simulation, user: str) -> Client:
    """Return the client of a user with no more than the permissions of every user."""
    return Client(ActingAs(simulation.transport(), user=user), user_agent="preflight", random=Random(0))


def failures(report: Report) -> dict[str, list[str]]:
    """Return the messages of the failed checks."""
    return {row.check: [one.message for one in row.findings] for row in report.rows if row.outcome == "failed"}


def reason(report: Report, name: str) -> tuple[str, str]:
    """Return outcome and reason of one check."""
    [row] = [row for row in report.rows if row.check == name]
    return row.outcome, row.reason
