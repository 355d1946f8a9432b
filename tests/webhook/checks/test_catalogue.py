"""Rules that hold for all checks."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from hack.simulation import Simulation
from tests.support.cluster.cluster_reader import MemoryReader, find, named, node
from tests.support.managers.toolkit_config import TOOLKIT
from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.kube import resources
from upgrade_manager.kube.errors import Forbidden, KubeError, Transient
from upgrade_manager.kube.resources import Resource
from webhook.catalogue import CHECKS
from webhook.check import Check, Outcome, Subject
from webhook.cluster import LiveReader
from webhook.runner import run_checks

SCENARIOS = [
    pytest.param(name, marks=pytest.mark.full if name == "nodes-100" else ())
    for name in sorted(path.stem for path in Path("hack/scenarios").glob("*.yaml"))
    if name != "nodes-1000"
]
SPEC = {"version": "v1.8.0", "image": "iso", "nodeUpgradeOption": {"pauseNodes": ["n1"], "pauseAfter": 1}}
#: The kinds that each check reads.
READS = {
    "version": (resources.VERSIONS, resources.SETTINGS),  # and, for a Version that exists, nodes and Rancher's cluster
    "image": (resources.VIRTUAL_MACHINE_IMAGES,),
    "pause list": (resources.NODES,),
    "pause after": (resources.NODES,),
    "annotations": (),
    "toolkit image": (),
    "VM migration": (),
    "concurrency": (resources.UPGRADE_PLANS,),
    "built-in upgrade": (resources.UPGRADES,),
    "nodes": (resources.NODES,),
    "cluster": (resources.PROVISIONING_CLUSTERS,),
    "rancher features": (resources.RANCHER_FEATURES,),
    "machines": (resources.MACHINES,),
    "pairing": (resources.NODES, resources.MACHINES),
    "Longhorn": (resources.NODES, resources.LONGHORN_VOLUMES),
    "backups": (resources.VIRTUAL_MACHINE_BACKUPS, resources.SCHEDULE_VM_BACKUPS),
    "VMs": (resources.NODES, resources.VIRTUAL_MACHINE_INSTANCES),
    "managed charts": (resources.MANAGED_CHARTS,),
    "addons": (resources.ADDONS,),
}
PAIRS = [(check, resource) for check in CHECKS for resource in READS[check.name]]
GRANT = "Grant the permission; the webhook gets its own by kubectl apply -k deploy"
IDS = [f"{check.name} {resource.name}" for check, resource in PAIRS]
#: Values that no schema allows, at any depth.
HOSTILE: list[Any] = [
    *(None, [], {}, "x", 7, True, [None, "x", {}]),
    {"conditions": [None, {"type": None}], "nodeName": {}},
]


def spec_for(check: Check) -> dict[str, Any]:
    return {key: value for key, value in SPEC.items() if not (check.name == "version" and key == "image")}


@pytest.mark.rule("admission: all findings are reported at once, in the table's order")
def test_checks_are_those_of_the_table_in_its_order() -> None:
    assert [check.name for check in CHECKS] == list(READS)


@pytest.mark.parametrize(("check", "resource"), PAIRS, ids=IDS)
async def test_each_check_reads_its_kinds_only(check: Check, resource: Resource) -> None:
    reader = MemoryReader({resources.NODES: [node("n1"), node("n2")]})
    await find(check, reader, **spec_for(check))
    assert resource in [listing.resource for listing in reader.listings]
    assert {listing.resource for listing in reader.listings} == set(READS[check.name])


@pytest.mark.rule("admission: an API that is not installed is an admission warning")
@pytest.mark.parametrize(("check", "resource"), PAIRS, ids=IDS)
async def test_missing_api_is_a_warning(check: Check, resource: Resource) -> None:
    subject = Subject.of(
        {"spec": spec_for(check)}, cluster=MemoryReader({}, missing=READS[check.name]), toolkit=TOOLKIT
    )
    (result,) = await run_checks([check], subject)
    assert (result.outcome, result.findings) == (Outcome.WARNING, ())
    [warning] = result.warnings
    assert "the cluster does not serve " in warning
    if READS[check.name] == (resource,):
        assert resource.name in warning


@pytest.mark.rule("admission: an error while checking denies and says why")
@pytest.mark.parametrize(
    ("error", "remedy"),
    [(Forbidden("list: 403 Forbidden"), GRANT), (Transient("list: no response"), "Try again")],
    ids=["forbidden", "no response"],
)
@pytest.mark.parametrize(("check", "resource"), PAIRS, ids=IDS)
async def test_api_error_denies_with_its_reason(
    check: Check, resource: Resource, error: KubeError, remedy: str
) -> None:
    others = [other for other in READS[check.name] if other != resource]
    # An error counts even where another API is missing.
    reader = MemoryReader({}, errors={resource: error}, missing=others)
    (result,) = await run_checks([check], Subject.of({"spec": spec_for(check)}, cluster=reader, toolkit=TOOLKIT))
    assert result.outcome is Outcome.FAILED
    assert [finding.field for finding in result.findings] == [check.field]
    assert result.findings[0].message == f"check {check.name!r} cannot be made: {error}. {remedy}"


@pytest.mark.rule("admission: no object of any shape breaks a check")
@pytest.mark.parametrize(("check", "resource"), PAIRS, ids=IDS)
async def test_hostile_objects_raise_no_error(check: Check, resource: Resource) -> None:
    names = {
        resources.VERSIONS: ("v1.8.0", HARVESTER_SYSTEM),
        resources.VIRTUAL_MACHINE_IMAGES: ("iso", HARVESTER_SYSTEM),
        resources.PROVISIONING_CLUSTERS: ("local", "fleet-local"),
    }
    name, namespace = names.get(resource, ("x", ""))
    hostile = [
        named(name, namespace, labels=labels, annotations=labels, spec=spec, status=status)
        for labels, spec, status in itertools.product(HOSTILE, repeat=3)
    ]
    hostile += [{"metadata": metadata} for metadata in HOSTILE]
    good = {resources.NODES: [node("n1"), node("n2")]}
    reader = MemoryReader(good | {resource: hostile})
    for message in await find(check, reader, **spec_for(check)):
        assert message


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_healthy_scenario_passes_all_checks(scenario: str) -> None:
    async with Simulation(scenario, actors=False) as simulation:
        plan = {"metadata": {"name": "demo"}, "spec": {"version": simulation.scenario.release.harvester}}
        results = await run_checks(CHECKS, Subject.of(plan, cluster=LiveReader(simulation.client()), toolkit=TOOLKIT))
    assert [(result.name, result.findings, result.warnings) for result in results] == [
        (check.name, (), ()) for check in CHECKS
    ]
