"""The FlowSchema of the lease, as a real API server applies it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from hack.control_plane.backend import direct
from hack.control_plane.control_plane import ADMIN, ControlPlane
from tests.support.programs.kustomize import DEPLOY
from tests.support.programs.polling import eventually
from tests.support.server.raw_client import RawClient
from upgrade_manager.api.keys import LEASE

SCHEMA: dict[str, Any] = yaml.safe_load((DEPLOY / "flow-schema/flow-schema.yaml").read_text())
ACCOUNTS = "system:serviceaccount:harvester-system"
FLOW_CONTROL = "/apis/flowcontrol.apiserver.k8s.io/v1"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/harvester-system/leases"


@pytest.mark.assets
@pytest.mark.real_loop
@pytest.mark.rule("security: the FlowSchema puts the manager's lease, and nothing else, under leader-election")
async def test_managers_lease_alone_has_the_level_of_leader_elections(control_plane: ControlPlane) -> None:
    async with direct(control_plane, token=ADMIN.token) as transport:
        admin = RawClient(transport)
        created = await admin.post(f"{FLOW_CONTROL}/flowschemas", SCHEMA)
        assert created.status == 201, created.body
        level = await admin.get(f"{FLOW_CONTROL}/prioritylevelconfigurations/leader-election")
        expected = (created.body["metadata"]["uid"], level.body["metadata"]["uid"])

        async def is_classified(method: str, path: str, account: str = "harvester-upgrade-manager") -> bool:
            """Return True if the schema matches a request of an account, be it allowed or refused."""
            client = RawClient(transport, headers={"impersonate-user": f"{ACCOUNTS}:{account}"})
            headers = (await client.call(method, path, {} if method in {"POST", "PUT"} else None)).headers
            found = tuple(headers[f"x-kubernetes-pf-{name}-uid"] for name in ("flowschema", "prioritylevel"))
            return found == expected

        try:
            # The API server watches the schemas.
            await eventually(lambda: is_classified("GET", f"{LEASES}/{LEASE}"), seconds=60)
            assert await is_classified("POST", LEASES)
            assert await is_classified("PUT", f"{LEASES}/{LEASE}")
            assert not await is_classified("DELETE", f"{LEASES}/{LEASE}")
            assert not await is_classified("GET", f"{LEASES}/{LEASE}", account="default")
            assert not await is_classified("GET", LEASES.replace("harvester-system", "kube-system") + f"/{LEASE}")
            assert not await is_classified("GET", "/api/v1/namespaces/harvester-system/configmaps/a")
        finally:
            await admin.delete(f"{FLOW_CONTROL}/flowschemas/{SCHEMA['metadata']['name']}")
