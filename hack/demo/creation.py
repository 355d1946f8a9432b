"""The creation of the plan: of a broken cluster, it is refused until the cluster is mended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hack.demo.breaks import BREAKS
from hack.demo.programs import DemoError
from upgrade_manager.kube.errors import Invalid
from upgrade_manager.kube.resources import UPGRADE_PLANS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hack.demo.breaks import Broken
    from upgrade_manager.display.screen import Screen
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object


async def break_cluster(client: Client, names: Sequence[str], screen: Screen) -> list[Broken]:
    """Break the objects of `--break`. Raises DemoError and KubeError."""
    broken = []
    for name in names:
        broken.append(await BREAKS[name](client))
        screen.show_message(f"\nBreaking ({name}):\n{broken[-1].damage}")
    return broken


async def create_plan(client: Client, manifest: Object, broken: Sequence[Broken], screen: Screen) -> Object:
    """Create the plan; show its refusal by a broken cluster, and mend that first. Raises DemoError, KubeError."""
    if not broken:
        return await client.create(UPGRADE_PLANS, manifest)
    screen.show_message("\nCreating the plan:")
    screen.show_message(refusal(await _refused(client, manifest)))
    screen.show_message("\nMending:")
    for one in broken:
        screen.show_message(one.remedy)
        await one.mend()
    plan = await client.create(UPGRADE_PLANS, manifest)
    screen.show_message("\nThe same plan is accepted.\n")
    return plan


async def _refused(client: Client, manifest: Object) -> Invalid:
    try:
        await client.create(UPGRADE_PLANS, manifest)
    except Invalid as error:
        return error
    raise DemoError("the broken cluster accepted the plan. Choose a --scenario with three nodes or more")


def refusal(error: Invalid) -> str:
    """Return the message that kubectl prints for a refused object."""
    details: dict[str, Any] = error.details
    causes = [": ".join(filter(None, (one.get("field"), one["message"]))) for one in details.get("causes") or ()]
    if not causes:
        return str(error)
    about = f'The {details["kind"]} "{details["name"]}" is invalid: '
    return about + (causes[0] if len(causes) == 1 else "".join(f"\n* {cause}" for cause in causes))
