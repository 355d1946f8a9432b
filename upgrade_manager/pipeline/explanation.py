"""Objects that only explain what is decided without them: whoever cannot have them soon does without."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from upgrade_manager.kube.errors import KubeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.resources import Resource

#: Seconds that an explanation may take: the step that asks for it has only some, and a verdict must not wait for words.
PATIENCE = 5.0


async def explaining(
    client: Client, resource: Resource, *, namespace: str, label_selector: str = "", field_selector: str = ""
) -> Sequence[Object]:
    """The selected objects; none where they cannot be read, or not in time."""
    try:
        async with asyncio.timeout(PATIENCE):
            found = await client.list(
                resource, namespace=namespace, label_selector=label_selector, field_selector=field_selector
            )
    except (KubeError, TimeoutError):
        return ()
    return found.items
