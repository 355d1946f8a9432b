"""The steps that wait until the upgrade repository serves a valid release.

The commands begin with one of these steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.toolkit.run.steps import Step

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from upgrade_manager.toolkit.run.context import ToolkitContext


async def _versions_unknown(context: ToolkitContext) -> str:
    """Return an empty text once the node's versions are known. Raises errors after which the step is retried."""
    await context.release.versions()
    await context.release.bundle()
    return ""


async def _components_unknown(context: ToolkitContext) -> str:
    """Return an empty text once the components' versions are known. Raises errors after which the step is retried."""
    await context.release.components()
    await context.release.bundle()
    return ""


def _wait(missing: Callable[[ToolkitContext], Awaitable[str]]) -> Step:
    return Step(name="wait-for-repository", timeout=1800, missing=missing)


#: The first step of the commands of a node.
WAIT_FOR_NODE_RELEASE = _wait(_versions_unknown)
#: The first step of the command of the cluster's services.
WAIT_FOR_CLUSTER_RELEASE = _wait(_components_unknown)
