"""A plan that was blocked by another one stays so for a stolen token of the manager."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.support.cluster.guarded_cluster import TOOLKIT, GuardedCluster, blocked
from tests.support.managers.manager_requests import Request, check, meta, patch, row
from tests.support.server.raw_client import RawClient
from upgrade_manager.api.conditions import AVAILABLE, PROGRESSING
from upgrade_manager.api.keys import LABEL_ACTIVE
from upgrade_manager.kube.resources import UPGRADE_PLANS

pytestmark = [pytest.mark.assets, pytest.mark.real_loop]

status = partial(patch, UPGRADE_PLANS, "blocked", subresource="status")
STAYS = "that was blocked stays blocked"
DEGRADED = blocked(AVAILABLE, PROGRESSING) + blocked("Degraded", reason="ReconcileError")


def label(value: str | None) -> Request:
    """Change the label of the active plan."""
    return patch(UPGRADE_PLANS, "blocked", **meta(labels={LABEL_ACTIVE: value}))


def changed(**fields: Any) -> list[dict[str, Any]]:
    """Return the conditions with other fields of Available."""
    return [blocked(AVAILABLE)[0] | fields, *blocked(PROGRESSING)]


CHANGES = {
    "remove the conditions": {"conditions": None},
    "remove Available": {"conditions": blocked(PROGRESSING)},
    "change the reason": {"conditions": changed(reason="Waiting")},
    "change the type": {"conditions": changed(type="Other")},
    "start a blocked plan": {"currentPhase": "Initializing"},
    "end a blocked plan": {"currentPhase": "Failed"},
}
RECORDED = status(status={"toolkitImage": TOOLKIT})
ROWS = [
    row("plans", STAYS, "activate a blocked plan", label("true"), label(None)),
    *(
        row("plan-status", STAYS, name, status(status=fields), status(status={"conditions": DEGRADED}))
        for name, fields in CHANGES.items()
    ),
    row("plan-status", "", "record the image of a blocked plan", RECORDED, status(status={"observedGeneration": 1})),
]


@pytest.mark.rule("permissions: a plan that was blocked by another one stays blocked")
@pytest.mark.parametrize(("policy", "text", "abuse", "permitted"), ROWS)
async def test_abuse_is_refused_and_work_permitted(
    manager: RawClient, cluster: GuardedCluster, policy: str, text: str, abuse: Request, permitted: Request
) -> None:
    await check(manager, cluster, policy=policy, text=text, abuse=abuse, permitted=permitted)
