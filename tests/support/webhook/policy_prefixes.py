"""Other prefixes of images in the policies for the manager's account, as the chart renders them from its values."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from hack.cluster.impersonation import ActingAs
from hack.simulation import Simulation
from tests.support.managers.manager_policies import ROOT
from tests.support.managers.upgrade import ACCOUNT
from tests.support.programs.polling import eventually
from tests.support.server.raw_client import RawClient
from upgrade_manager.api.keys import DEFAULT_TOOLKIT_IMAGE, LABEL_ACTIVE
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.kube.transport import Transport

_POLICIES = f"{ROOT}/validatingadmissionpolicies/harvester-upgrade-manager-"
#: Those with prefixes; the probe is a request to the last one.
_LIMITED = ("pods", "suc-plans", "plan-status")
#: Seconds until kube-apiserver has compiled the policies.
_COMPILED = 60.0
_PLAN: dict[str, Any] = {
    "apiVersion": UPGRADE_PLANS.api_version,
    "kind": UPGRADE_PLANS.kind,
    "metadata": {"name": "probe", "labels": {LABEL_ACTIVE: "true"}},
    "spec": {"version": "v1.8.0"},
}


@asynccontextmanager
async def image_prefixes(simulation: Simulation, *prefixes: str) -> AsyncIterator[None]:
    """Replace the prefixes until the context ends: the policies stay for later tests. No manager runs at either end.

    The embedded server has no policies.
    """
    if not simulation.backend.has_controllers:
        yield
        return
    admin, marker = simulation.transport(), f"probe-{uuid4().hex}"
    await _replace(admin, [*prefixes, marker], marker=marker, permitted=True)
    try:
        yield
    finally:
        await _replace(admin, [DEFAULT_TOOLKIT_IMAGE], marker=marker, permitted=False)


async def _replace(admin: Transport, prefixes: list[str], *, marker: str, permitted: bool) -> None:
    client, manager = RawClient(admin), RawClient(ActingAs(admin, user=ACCOUNT))
    for policy in _LIMITED:
        variables = (await client.get(_POLICIES + policy)).body["spec"]["variables"]
        index = [one["name"] for one in variables].index("prefixes")
        change = {"op": "replace", "path": f"/spec/variables/{index}/expression", "value": json.dumps(prefixes)}
        assert (await client.patch(_POLICIES + policy, [change], kind="json")).status == 200
    assert (await client.post(UPGRADE_PLANS.path(), _PLAN)).status == 201
    path = UPGRADE_PLANS.path("probe", subresource="status")
    image = {"repository": marker, "tag": "v1", "kind": "harvester"}

    async def is_enforced() -> bool:
        patched = await manager.patch(path, {"status": {"toolkitImage": image}}, dryRun="All")
        return (patched.status == 200) is permitted

    await eventually(is_enforced, seconds=_COMPILED)
    assert (await client.delete(UPGRADE_PLANS.path("probe"))).status == 200
