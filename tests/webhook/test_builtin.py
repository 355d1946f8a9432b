"""The verdicts about Harvester's own upgrades."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.webhook import webhook
from upgrade_manager.kube.errors import Forbidden
from upgrade_manager.kube.objects import Object
from webhook.cluster import Listing, NotInstalled
from webhook.review import UPGRADE_KIND, AdmissionRequest, Verdict, respond

WAIT = "kubectl wait --for=condition=Progressing=False --timeout=24h upgradeplans.management.harvesterhci.io one"


class Plans:
    """A reader of plans, or one that fails."""

    def __init__(self, *plans: Object, error: Exception | None = None) -> None:
        self._plans = plans
        self._error = error

    async def list(self, _: Listing) -> Sequence[Object]:
        """See ClusterReader."""
        if self._error is not None:
            raise self._error
        return self._plans


def plan(phase: str, progressing: str = "", **status: Any) -> Object:
    conditions = [{"type": "Progressing", "status": progressing}] if progressing else []
    return {"metadata": {"name": "one"}, "status": {"currentPhase": phase, "conditions": conditions, **status}}


def request(operation: str = "CREATE", subresource: str = "") -> AdmissionRequest:
    new = {"metadata": {"name": "hvst-upgrade", "namespace": "harvester-system"}}
    return AdmissionRequest(
        uid="1", operation=operation, kind=UPGRADE_KIND, subresource=subresource, name="hvst-upgrade", new=new, old=None
    )


async def decide(reader: Plans, **fields: str) -> Verdict:
    return await webhook.admission(reader=reader).decide(request(**fields))


@pytest.mark.rule("admission: an Upgrade of Harvester is denied while a plan runs or cleans up")
@pytest.mark.parametrize(
    ("found", "denied"),
    [
        pytest.param(plan("NodeUpgrading", "True"), True, id="runs"),
        pytest.param(plan("CleaningUp", "True"), True, id="cleans up"),
        pytest.param(plan("", queuedSince="2026-01-01T00:00:00Z"), False, id="queued"),
        pytest.param(plan("Succeeded", "False"), False, id="succeeded"),
        pytest.param(plan("Failed", "False"), False, id="failed"),
        pytest.param(plan("Failed", queuedSince="2026-01-01T00:00:00Z"), False, id="queued again"),
    ],
)
async def test_running_plan_denies(found: Object, *, denied: bool) -> None:
    verdict = await decide(Plans(found))
    assert verdict.is_allowed is not denied
    phase = found["status"]["currentPhase"]
    text = f"UpgradePlan one is in progress (phase {phase}). Wait until it has ended: {WAIT}"
    assert [one.message for one in verdict.findings] == ([text] if denied else [])


async def test_response_names_the_upgrade() -> None:
    response = respond(request(), await decide(Plans(plan("NodeUpgrading", "True"))))["response"]
    prefix = 'Upgrade.harvesterhci.io "hvst-upgrade" is invalid: UpgradePlan one is in progress'
    assert response["status"]["message"].startswith(prefix)
    assert response["status"]["details"]["group"] == "harvesterhci.io"


@pytest.mark.rule("admission: an Upgrade of Harvester is admitted with a warning if plans cannot be read")
@pytest.mark.parametrize("error", [Forbidden("no"), NotInstalled("upgradeplans"), TimeoutError(), ValueError("odd")])
async def test_upgrade_is_admitted_if_plans_cannot_be_read(error: Exception) -> None:
    verdict = await decide(Plans(error=error))
    assert (verdict.is_allowed, len(verdict.warnings)) == (True, 1)


@pytest.mark.parametrize("fields", [{"operation": "DELETE"}, {"operation": "UPDATE"}, {"subresource": "status"}])
async def test_other_requests_pass(fields: dict[str, str]) -> None:
    assert (await decide(Plans(plan("NodeUpgrading", "True")), **fields)).is_allowed
