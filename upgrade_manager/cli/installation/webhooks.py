"""Checks that the API server calls the admission webhook, and that the webhook responds; catalogue.py lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import API_VERSION, HARVESTER_SYSTEM, KIND, MANAGER
from upgrade_manager.cli.installation.cluster import INSTALL, WEBHOOK, variable
from upgrade_manager.cli.installation.row import Row, failed, passed, skipped
from upgrade_manager.facts.endpoint_slices import ready_endpoints
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Forbidden, Invalid, Transient
from upgrade_manager.kube.resources import (
    ENDPOINT_SLICES,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    UPGRADE_PLANS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)

if TYPE_CHECKING:
    from upgrade_manager.cli.installation.cluster import Cluster

_CONFIGURATION, _SERVICE, _RESPONSE = "webhook configurations", "webhook Service", "webhook response"
_CONFIGURATIONS = (
    (VALIDATING_WEBHOOK_CONFIGURATIONS, MANAGER),
    (MUTATING_WEBHOOK_CONFIGURATIONS, MANAGER),
    (VALIDATING_WEBHOOK_CONFIGURATIONS, f"{MANAGER}-upgrades"),
)
#: Valid for the schema, and of a Version that no cluster has: whether it is refused shows who has seen it.
PROBE = {
    "apiVersion": API_VERSION,
    "kind": KIND,
    "metadata": {"name": "upgrade-manager-check"},
    "spec": {"version": "upgrade-manager-check"},
}
_OFF = "The webhook is turned off."
_LOGS = f"kubectl -n {HARVESTER_SYSTEM} logs -l management.harvesterhci.io/serves=webhook"


async def check_configurations(cluster: Cluster) -> Row:
    """Check that the configurations exist, and trust a certificate."""
    if await _is_off(cluster):
        return skipped(_CONFIGURATION, _OFF)
    for resource, name in _CONFIGURATIONS:
        found = await cluster.client.find(resource, name)
        if found is None:
            what = "Harvester's own upgrades" if name != MANAGER else "plans"
            return failed(_CONFIGURATION, f"{resource.kind} {name} does not exist: {what} are not checked.", INSTALL)
        hooks = objects.items(found, "webhooks")
        if not hooks or not all(objects.text(one, "clientConfig", "caBundle") for one in hooks):
            return failed(_CONFIGURATION, f"{resource.kind} {name} has no caBundle, which the webhook sets.", _LOGS)
    return passed(_CONFIGURATION)


async def check_service(cluster: Cluster) -> Row:
    """Check that the Service leads to a Pod that is ready."""
    if await _is_off(cluster):
        return skipped(_SERVICE, _OFF)
    selector = f"kubernetes.io/service-name={WEBHOOK}"
    slices = (await cluster.client.list(ENDPOINT_SLICES, namespace=HARVESTER_SYSTEM, label_selector=selector)).items
    ready = sum(map(ready_endpoints, slices))
    if ready:
        return passed(_SERVICE, f"{ready} endpoint{'s are' if ready > 1 else ' is'} ready.")
    return failed(
        _SERVICE,
        f"Service {HARVESTER_SYSTEM}/{WEBHOOK} has no endpoint that is ready: no plan can be created.",
        f"kubectl -n {HARVESTER_SYSTEM} get endpointslices -l {selector}",
    )


async def check_response(cluster: Cluster) -> Row:
    """Check that the webhook refuses a plan that it must refuse, in a dry run."""
    if await _is_off(cluster):
        return skipped(_RESPONSE, _OFF)
    path = UPGRADE_PLANS.path()
    try:
        await cluster.client.without_retries().raw("POST", path, query=(("dryRun", "All"),), body=PROBE)
    except Invalid:
        return passed(_RESPONSE, "It has refused a plan of a Version that does not exist, in a dry run.")
    except Forbidden:
        return skipped(_RESPONSE, "You may not create UpgradePlans, in a dry run either.")
    except Transient as error:
        # The message of the API server has the webhook's name and the cause: no connection, or another CA.
        return failed(_RESPONSE, f"{error}.", _LOGS)
    reason = "A plan of a Version that does not exist is accepted, so that the API server does not call the webhook."
    return failed(_RESPONSE, reason, INSTALL)


async def _is_off(cluster: Cluster) -> bool:
    """Return True if neither Deployment serves the webhook."""
    manager = await cluster.deployment(MANAGER)
    return (
        manager is not None
        and variable(manager, "ENABLE_WEBHOOKS") == "false"
        and await cluster.deployment(WEBHOOK) is None
    )
