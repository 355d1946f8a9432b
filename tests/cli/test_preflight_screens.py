"""The output of `upgrade-manager preflight` on terminals and in a pipe, character by character."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hack import scenario as scenarios
from hack.apiserver.crds import CRDS
from hack.simulation import Simulation
from tests.support.managers.toolkit_config import TOOLKIT
from tests.support.webhook.surroundings import IsoServers, as_user, gate, plan_of
from upgrade_manager.cli.preflight import toolkit_facts
from upgrade_manager.cli.preflight_view import PreflightView
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES, SETTINGS, VIRTUAL_MACHINE_IMAGES
from webhook.preflight.iso_server import IsoResponse

FOLDER = Path(__file__).parents[1] / "golden/preflight"
#: Columns and lines of terminals; None for a pipe.
SIZES: list[tuple[int, int] | None] = [(80, 24), (120, 40), (200, 50), None]
SPEC = {"version": "v1.8.0", "upgrade": "v1.8.0"}


async def _nothing(_: Simulation) -> None:
    """Leave the cluster as it is."""


async def _cordon(simulation: Simulation) -> None:
    for name in ("node-0", "node-1"):
        await simulation.client().patch(NODES, name, MergePatch({"spec": {"unschedulable": True}}))


async def _upgrade(simulation: Simulation) -> None:
    await simulation.client().patch(SETTINGS, "server-version", MergePatch({"value": "v1.8.0"}))
    for name in ("node-0", "node-1", "node-2"):
        patch = MergePatch({"status": {"nodeInfo": {"osImage": "Harvester v1.8.0"}}})
        await simulation.client().patch(NODES, name, patch, subresource="status")


async def _remove_harvester(simulation: Simulation) -> None:
    for name in ("settings.harvesterhci.io", "machines.cluster.x-k8s.io"):
        await simulation.client().delete(CRDS, name)


async def _import_iso(simulation: Simulation) -> None:
    annotations = {"harvesterhci.io/os-upgrade-image": "True"}
    head = {"name": "harvester-iso", "namespace": "harvester-system", "annotations": annotations}
    kind = VIRTUAL_MACHINE_IMAGES
    spec = {"displayName": "harvester-iso", "sourceType": "download"}
    await simulation.client().create(
        kind, {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": head, "spec": spec}
    )


REACHABLE = IsoResponse(status=200, size=7 << 30)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A run of the command."""

    spec: dict[str, Any] = field(default_factory=lambda: dict(SPEC))
    nodes: dict[str, Any] = field(default_factory=dict)
    certificates: dict[str, Any] = field(default_factory=dict)
    prepare: Callable[[Simulation], Awaitable[None]] = _nothing
    response: IsoResponse | str = REACHABLE
    user: str = ""


FULL = {"disks": {"node-1": {"used_gib": 250}}}
CASES = {
    "passed": Case(),
    "several": Case(nodes=FULL, certificates={"10.53.0.2": {"days": 3}}, prepare=_cordon),
    "field-unknown": Case(spec={**SPEC, "restoreVm": True}),
    "iso-unreachable": Case(response="no response within 15 s"),
    "guessed-tag": Case(spec={"image": "harvester-iso"}, prepare=_import_iso),
    "nothing-to-do": Case(prepare=_upgrade),
    "missing-right": Case(user="alice"),
    "not-harvester": Case(prepare=_remove_harvester),
}


async def view_of(case: Case) -> PreflightView:
    scenario = scenarios.load("three-nodes").changed(nodes=case.nodes, api_servers=case.certificates)
    async with Simulation(scenario) as simulation:
        await case.prepare(simulation)
        plan = plan_of(case.spec)
        client = as_user(simulation, case.user) if case.user else None
        report = await gate(simulation, plan, iso=IsoServers({simulation.iso_url: case.response}), client=client)
    image, stuck = toolkit_facts(plan, TOOLKIT)
    return PreflightView(
        context="production",
        server="https://10.0.0.10:6443",
        plan=plan,
        image=image,
        on_migration_failure=stuck,
        report=report,
    )


def visible(text: str, width: int, height: int) -> Iterator[str]:
    """Yield the lines, with a mark below those that the terminal, whose last row has the prompt, no longer shows."""
    lines, rows = text.splitlines(), 0
    first = len(lines)
    while first and rows + -(-max(len(lines[first - 1]), 1) // width) < height:
        first -= 1
        rows += -(-max(len(lines[first]), 1) // width)
    yield from lines[:first]
    if first:
        yield f"^^^ above the terminal's {height} lines"
    yield from lines[first:]


def listing(view: PreflightView) -> str:
    lines: list[str] = []
    for size in SIZES:
        width, height = size or (0, 0)
        lines.append(f"== {width}x{height}" if size else "== pipe")
        text = view.table(width=width or None)
        lines += visible(text, width, height) if size else text.splitlines()
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.rule(
    "admission: preflight shows each command alone on its line, which it never wraps",
    "admission: preflight begins with context, server, running version and target",
)
@pytest.mark.parametrize("name", CASES)
async def test_screens_of_preflight(name: str) -> None:
    """With GOLDEN=write it writes the listings."""
    view = await view_of(CASES[name])
    path, drawn = FOLDER / f"{name}.txt", listing(view)
    if os.environ.get("GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(drawn)
    assert drawn == path.read_text()
    first = "Context production, server https://10.0.0.10:6443, run"
    for size in SIZES:
        lines = view.table(width=size[0] if size else None).splitlines()
        assert lines[0].startswith(first)
        found = (one for row in view.report.rows for finding in row.findings for one in finding.remedies)
        assert all(one.command in lines for one in found if one.command)
        assert set(view.report.bind) <= set(lines)
