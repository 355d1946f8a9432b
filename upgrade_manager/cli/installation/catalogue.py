"""The checks of an installation, in the order of the table, and their run; cli/check.py calls it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from upgrade_manager.cli.installation import (
    definition,
    deployments,
    leader,
    monitoring,
    rights,
    toolkit,
    webhooks,
)
from upgrade_manager.cli.installation.row import Row, failed, skipped
from upgrade_manager.kube.errors import Forbidden, KubeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from upgrade_manager.cli.installation.cluster import Cluster

#: Seconds for one check.
TIMEOUT = 20.0
#: By name.
CHECKS: dict[str, Callable[[Cluster], Awaitable[Row]]] = {
    "CustomResourceDefinition": definition.check_definition,
    "manager": deployments.check_manager,
    "version": deployments.check_version,
    "leader": leader.check_leader,
    "toolkit image": toolkit.check_toolkit,
    "webhook": deployments.check_webhook,
    "webhook configurations": webhooks.check_configurations,
    "webhook Service": webhooks.check_service,
    "webhook response": webhooks.check_response,
    "your rights": rights.check_user_rights,
    "manager's rights": rights.check_manager_rights,
    "ServiceMonitor": monitoring.check_service_monitor,
    "PrometheusRule": monitoring.check_rule,
}


async def check_all(cluster: Cluster) -> list[Row]:
    """Run all checks at the same time, on a state that is read for this run."""
    cluster = replace(cluster, reads={})
    return list(await asyncio.gather(*(_row(name, check, cluster) for name, check in CHECKS.items())))


async def _row(name: str, check: Callable[[Cluster], Awaitable[Row]], cluster: Cluster) -> Row:
    try:
        async with asyncio.timeout(TIMEOUT):
            return await check(cluster)
    except Forbidden as error:
        return skipped(name, f"You may not read what it needs: {error}.")
    except KubeError as error:
        return failed(name, f"{error}.")
    except TimeoutError:
        return failed(name, f"The API server did not respond within {TIMEOUT:.0f} s.")
