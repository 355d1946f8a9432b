"""The admission policy and the roles of deploy on the real API server, with a user for each role."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.support.cluster.kubectl import PLANS, ROLES, Cluster, manifest
from tests.support.programs.kustomize import DEPLOY
from tests.support.programs.polling import eventually
from tests.support.server.raw_client import JsonResponse, RawClient
from upgrade_manager.api.keys import ANNOTATION_CREATED_BY, ANNOTATION_TOOLKIT_IMAGE

MANIFEST = DEPLOY / "admission-policies/upgradeplans.yaml"
POLICY = "harvester-upgrade-manager-upgradeplans"
#: Users, each with the role of that name.
USERS = ("viewer", "operator", "editor", "admin")
#: May do all with plans, but nothing that the policy asks for.
STRANGER = "stranger"
_VERBS = "get,list,watch,create,update,patch,delete,deletecollection"
#: Seconds until the API server knows policies and roles.
_SECONDS = 60.0
_CREATED, _FORBIDDEN = 201, 403


@asynccontextmanager
async def installed(cluster: Cluster) -> AsyncIterator[None]:
    """Install policy and roles until the context ends: other tests create plans."""
    await install(cluster)
    try:
        yield
    finally:
        await remove(cluster)


async def install(cluster: Cluster) -> None:
    """Install policy and roles, bind the roles, and wait until the API server applies them."""
    await cluster.succeed("apply", "-f", str(MANIFEST), "-f", str(ROLES))
    for user in USERS:
        role = f"harvester-upgrade-manager-{user}"
        await cluster.succeed("create", "clusterrolebinding", user, f"--clusterrole={role}", f"--user={user}")
    resource = "upgradeplans.management.harvesterhci.io"
    await cluster.succeed("create", "clusterrole", STRANGER, f"--verb={_VERBS}", f"--resource={resource}")
    await bind(cluster, STRANGER)

    async def is_effective() -> bool:
        """Return True if the policy denies the stranger, and admits the admin."""
        chosen = plan("canary", {ANNOTATION_TOOLKIT_IMAGE: "a/b"})
        denied = await acting_as(cluster, STRANGER).post(PLANS, chosen, dryRun="All")
        admitted = await acting_as(cluster, "admin").post(PLANS, chosen, dryRun="All")
        is_denied = denied.status == _FORBIDDEN and "ValidatingAdmissionPolicy" in denied.body["message"]
        return is_denied and admitted.status == _CREATED

    await eventually(is_effective, seconds=_SECONDS)


async def remove(cluster: Cluster) -> None:
    """Remove all policies, and wait until the API server does not apply that of the users any more."""
    await cluster.succeed("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", "--all")
    of_another = plan("canary", {ANNOTATION_CREATED_BY: "another"})

    async def is_without_effect() -> bool:
        return (await cluster.wire.post(PLANS, of_another, dryRun="All")).status == _CREATED

    await eventually(is_without_effect, seconds=_SECONDS)


async def bind(cluster: Cluster, user: str, *, name: str = STRANGER) -> None:
    """Allow a user what the stranger may do, and wait until the server knows: its authorizer watches the bindings."""
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": STRANGER},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }
    answer = await cluster.wire.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    assert answer.status == _CREATED, answer.body
    wire = acting_as(cluster, user)

    async def is_known() -> bool:
        return (await wire.get(PLANS)).status != _FORBIDDEN

    await eventually(is_known)


def acting_as(cluster: Cluster, user: str) -> RawClient:
    """Return a client that impersonates the user."""
    return RawClient(cluster.wire.transport, headers={"impersonate-user": user})


def plan(name: str, annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """Return a plan; its default version is v1.8.0."""
    found = manifest(name, **{"version": "v1.8.0", **spec})
    found["metadata"]["annotations"] = annotations or {}
    return found


def annotated(**annotations: str | None) -> dict[str, Any]:
    """Return the merge patch of annotations, with underscores for hyphens and without the prefix."""
    named = {f"management.harvesterhci.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {"metadata": {"annotations": named}}


def message(answer: JsonResponse) -> str:
    """Return what the policy says."""
    text: str = answer.body["message"]
    return text.partition(" denied request: ")[2]
