"""The admission webhooks of the demo's manager, registered as in deploy/webhook."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from hack.demo.polling import until
from hack.demo.ports import HOST
from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.kube.errors import Invalid, Transient
from upgrade_manager.kube.resources import (
    MUTATING_WEBHOOK_CONFIGURATIONS,
    SECRETS,
    SERVICES,
    UPGRADE_PLANS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)
from webhook.certificates.rotation import SECRET
from webhook.certificates.secret import AUTHORITY

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client

#: Seconds in which the API server has to call a registered webhook.
EFFECTIVE_TIMEOUT = 60.0
_DEPLOY = Path(__file__).parents[2] / "deploy"
_OTHERS = ("mutating", "upgrades")
_PROBE = "webhook-probe"


async def create_secret(client: Client) -> None:
    """Create the Secret of the certificate, which the manager fills."""
    await client.create(SECRETS, yaml.safe_load((_DEPLOY / "webhook/certificate.yaml").read_text()))


async def register(client: Client, *, port: int) -> None:
    """Register the webhooks of a manager that is ready, and wait until the API server calls them. Raises DemoError.

    There is no cluster network: the Service names the manager's host, and the configuration its port. The caBundle is
    what the manager itself would write when it checks its certificate next.
    """
    secret = await client.get(SECRETS, SECRET, namespace=HARVESTER_SYSTEM)
    service, validating = yaml.safe_load_all((_DEPLOY / "webhook/webhook.yaml").read_text())
    mutating, upgrades = (yaml.safe_load((_DEPLOY / f"webhook/{name}.yaml").read_text()) for name in _OTHERS)
    service["spec"] = {"type": "ExternalName", "externalName": HOST}
    for one in (*validating["webhooks"], *mutating["webhooks"], *upgrades["webhooks"]):
        one["clientConfig"]["caBundle"] = secret["data"][AUTHORITY]
        one["clientConfig"]["service"]["port"] = port
    await client.create(SERVICES, service)
    await client.create(MUTATING_WEBHOOK_CONFIGURATIONS, mutating)
    await client.create(VALIDATING_WEBHOOK_CONFIGURATIONS, upgrades)
    await client.create(VALIDATING_WEBHOOK_CONFIGURATIONS, validating)

    async def is_effective() -> bool:
        return await _denies(client)

    await until(is_effective, within=EFFECTIVE_TIMEOUT, otherwise="the API server has not called the admission webhook")


async def _denies(client: Client) -> bool:
    """Return whether a plan with an unknown Version is refused; a dry run creates nothing."""
    kind = UPGRADE_PLANS
    plan = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": _PROBE},
        "spec": {"version": "v0.0.0"},
    }
    try:
        await client.raw("POST", kind.path(), query=(("dryRun", "All"),), body=plan)
    except Invalid:
        return True
    except Transient:
        # The API server knows the configuration, but not yet the Service.
        return False
    return False
