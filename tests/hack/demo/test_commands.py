"""Changes that the demo makes, and the command lines of their user."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hack.demo.commands import Patch
from hack.simulation import Simulation
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import NODES

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

CONDITION = {"type": "ClockSkewed", "status": "True"}


@pytest.mark.parametrize(
    ("subresource", "text"),
    [
        ("", 'kubectl patch nodes node-1 --type=merge -p \'{"status":{"conditions":[]}}\''),
        ("status", 'kubectl patch nodes node-1 --subresource status --type=merge -p \'{"status":{"conditions":[]}}\''),
    ],
)
def test_command_line_names_the_subresource(subresource: str, text: str) -> None:
    body: Object = {"status": {"conditions": []}}
    assert str(Patch(resource=NODES, name="node-1", subresource=subresource, body=body)) == text


async def test_patch_of_the_status_changes_the_status() -> None:
    async with Simulation(actors=False) as simulation:
        client = simulation.client()
        patch = Patch(resource=NODES, name="node-1", subresource="status", body={"status": {"conditions": [CONDITION]}})
        await patch.run(client)
        assert objects.is_condition_true(await client.get(NODES, "node-1"), "ClockSkewed")
