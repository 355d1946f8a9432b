"""The review of Harvester's own Upgrades, which are denied while a plan runs; admission.py calls it.

What cannot be decided is admitted: the webhook must not block Harvester's own upgrade. The manager waits for one that
begins nevertheless (upgrade_manager/pipeline/holders.py).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from webhook.checks import concurrency
from webhook.listings import PLANS
from webhook.review import Verdict

if TYPE_CHECKING:
    from webhook.cluster import ClusterReader
    from webhook.review import AdmissionRequest

PATH = "/validate-harvesterhci-io-v1beta1-upgrade"
#: Seconds for the list of plans, which is less than the API server's time-out (timeoutSeconds).
DEADLINE = 4.0
_UNREAD = "UpgradePlans cannot be read, so that this Upgrade may begin beside one. Run kubectl get upgradeplans"
log = structlog.get_logger(__name__)


async def decide(request: AdmissionRequest, cluster: ClusterReader) -> Verdict:
    """Return the verdict about an Upgrade."""
    if request.operation != "CREATE" or request.subresource:
        return Verdict()
    try:
        async with asyncio.timeout(DEADLINE):
            plans = await cluster.list(PLANS)
    except Exception as error:  # noqa: BLE001  # fail open
        log.warning("upgrade admitted, because plans cannot be read", error=str(error) or type(error).__name__)
        return Verdict(warnings=[_UNREAD])
    return Verdict(findings=concurrency.running(plans))
