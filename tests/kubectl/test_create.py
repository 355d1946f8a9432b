"""kubectl create of built-in kinds: typed commands, which send protobuf."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support.cluster.kubectl import Cluster

pytestmark = [pytest.mark.real_loop, pytest.mark.servers]


#: Arguments, and fields of the object.
CREATED: dict[str, dict[str, Any]] = {
    "namespace alpha": {"status": {"phase": "Active"}},
    "serviceaccount alpha": {},
    "configmap alpha --from-literal=a=é": {"data": {"a": "é"}},
    "secret generic alpha --from-literal=a=b": {"data": {"a": "Yg=="}, "type": "Opaque"},
    "quota alpha --hard=pods=0,cpu=500m": {"spec": {"hard": {"cpu": "500m", "pods": "0"}}},
    "clusterrole alpha --verb=get --resource=pods": {},
}


async def test_objects_are_created_once(cluster: Cluster) -> None:
    for arguments, expected in CREATED.items():
        created = (await cluster.succeed("create", *arguments.split(), "-o", "json")).json
        kind = arguments.partition(" ")[0]
        stored = (await cluster.succeed("get", kind, "alpha", "-o", "json")).json
        assert created["metadata"]["uid"] == stored["metadata"]["uid"]
        assert {key: stored[key] for key in expected} == expected
        if kind == "configmap":
            assert 'configmaps "alpha" already exists' in await cluster.fail("create", kind, "alpha")
        await cluster.succeed("delete", kind, "alpha")


async def test_job_is_created_in_a_dry_run(cluster: Cluster) -> None:
    arguments = ("job", "alpha", "--image=busybox:1.36", "--dry-run=server", "-o", "json", "--", "sleep", "9")
    job = (await cluster.succeed("create", *arguments)).json
    assert job["spec"]["backoffLimit"] == 6
    pod = job["spec"]["template"]["spec"]
    assert pod["restartPolicy"] == "Never"
    assert pod["containers"][0]["command"] == ["sleep", "9"]
    assert (await cluster.succeed("get", "jobs", "-o", "name")).out == ""
