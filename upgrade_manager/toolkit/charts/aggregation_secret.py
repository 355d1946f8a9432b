"""The Secret that Rancher's Plan system-agent-upgrader names; installations of v1.6 and v1.7 lack it.

The command cluster_upgrade creates it after Rancher's upgrade.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.keys import CATTLE_SYSTEM
from upgrade_manager.kube.errors import AlreadyExists
from upgrade_manager.kube.resources import SECRETS

if TYPE_CHECKING:
    from upgrade_manager.toolkit.run.context import ToolkitContext

_NAME = "stv-aggregation"


async def secret_missing(context: ToolkitContext) -> str:
    """Return that the Secret does not exist; its content is never read."""
    found = await context.client.find(SECRETS, _NAME, namespace=CATTLE_SYSTEM, metadata_only=True)
    return "" if found is not None else f"Secret {CATTLE_SYSTEM}/{_NAME} does not exist"


async def create_secret(context: ToolkitContext) -> None:
    """Create the Secret, empty; one that exists meanwhile stays."""
    metadata = {"name": _NAME, "namespace": CATTLE_SYSTEM}
    try:
        await context.client.create(SECRETS, SECRETS.with_type_meta({"metadata": metadata, "type": "Opaque"}))
    except AlreadyExists:
        return
