"""The ValidatingAdmissionPolicies for the manager's account, on a real API server: the embedded one has none."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import Any

from hack.cluster.impersonation import ActingAs
from hack.yaml_documents import documents
from tests.support.programs.polling import eventually
from tests.support.server.raw_client import RawClient
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import JOBS
from upgrade_manager.kube.transport import Transport

FOLDER = Path(__file__).parents[3] / "deploy" / "admission-policies"
ROOT = "/apis/admissionregistration.k8s.io/v1"
PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
_SAVED = {200, 201, 409}
#: Seconds until kube-apiserver has compiled the policies.
_COMPILED = 60.0
_PROBE: dict[str, Any] = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "probe"}}
_PROBED_POD = {"restartPolicy": "Never", "containers": [{"name": "probe", "image": "probe"}]}
_PROBE["spec"] = {"template": {"spec": _PROBED_POD}}


@cache
def _parsed() -> list[Object]:
    return [one for path in sorted(FOLDER.glob("manager-*.yaml")) for one in documents(path.read_text())]


def manager_policies() -> list[Object]:
    """Return a copy of the policies for the manager's account, then their bindings."""
    return sorted(copy.deepcopy(_parsed()), key=lambda one: [*PLURALS].index(one["kind"]))


async def unbind(admin: RawClient) -> None:
    """Delete the bindings that earlier tests have left, for a test in which the manager does what the policies forbid.

    The policies are enforced for a moment longer. `install` creates the bindings again.
    """
    for manifest in manager_policies():
        if manifest["kind"] == "ValidatingAdmissionPolicyBinding":
            await admin.delete(f"{ROOT}/{PLURALS[manifest['kind']]}/{manifest['metadata']['name']}")


def is_refused_by_policy(body: Any) -> bool:
    """Return True for the Status of a request that a policy refused: RBAC gives no cause, schemas give its field."""
    causes = (body.get("details") or {}).get("causes") or []
    return bool(causes) and not any(cause.keys() & {"field", "reason"} for cause in causes)


async def install(admin: Transport, *, account: str, manifests: list[Object]) -> None:
    """Create the policies, and wait until they are enforced: a Job without labels is refused by one.

    The account needs its RBAC rules before. The API server reads bindings in the order of their creation, so that all
    are enforced with the last one.
    """
    client = RawClient(admin)
    for manifest in manifests:
        created = await client.post(f"{ROOT}/{PLURALS[manifest['kind']]}", manifest)
        assert created.status in _SAVED, created.body
    manager = RawClient(ActingAs(admin, user=account))

    async def is_enforced() -> bool:
        probed = await manager.post(JOBS.path(namespace="harvester-system"), _PROBE, dryRun="All")
        return is_refused_by_policy(probed.body)

    await eventually(is_enforced, seconds=_COMPILED)
