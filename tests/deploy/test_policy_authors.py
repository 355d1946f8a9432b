"""Who may install the manager's policies on the real API server: those that name a parameter need more permissions."""

from __future__ import annotations

from typing import Any

import pytest

from hack.cluster.impersonation import ActingAs
from tests.support.cluster.guarded_cluster import GuardedCluster
from tests.support.managers.manager_policies import PLURALS, ROOT, manager_policies
from tests.support.programs.polling import eventually
from tests.support.server.accounts import grant
from tests.support.server.raw_client import RawClient
from upgrade_manager.api.keys import GROUP

pytestmark = [pytest.mark.assets, pytest.mark.real_loop]

POLICIES = {"apiGroups": ["admissionregistration.k8s.io"], "resources": [*PLURALS.values()], "verbs": ["create"]}


def plans(*verbs: str) -> dict[str, Any]:
    return {"apiGroups": [GROUP], "resources": ["upgradeplans"], "verbs": [*verbs]}


@pytest.mark.parametrize(
    ("user", "verbs", "kinds"),
    [
        pytest.param("none", (), [], id="no permission on plans"),
        pytest.param("get", ("get",), ["ValidatingAdmissionPolicy"], id="get"),
        pytest.param("both", ("get", "list"), [*PLURALS], id="get and list"),
    ],
)
async def test_author_needs_to_read_all_plans(
    admin: RawClient, cluster: GuardedCluster, user: str, verbs: tuple[str, ...], kinds: list[str]
) -> None:
    _ = cluster
    await grant(admin, user, POLICIES, *([plans(*verbs)] if verbs else []), name=f"author-{user}")
    author = RawClient(ActingAs(admin.transport, user=user))
    parametrised = [one for one in manager_policies() if one["metadata"]["name"].endswith("-active-plan")]

    async def created() -> list[str] | None:
        responses = [await author.post(f"{ROOT}/{PLURALS[one['kind']]}", one, dryRun="All") for one in parametrised]
        if any(response.status == 403 for response in responses):
            return None
        # They exist; the refusal for lack of permission on plans is 422 and comes first.
        assert {response.status for response in responses} <= {409, 422}
        return [one["kind"] for one, response in zip(parametrised, responses, strict=True) if response.status == 409]

    assert await eventually(lambda: pending(created), seconds=60) == [kinds]


async def pending(poll: Any) -> list[Any]:
    """Return the result in a list, which is true even if the result is empty."""
    found = await poll()
    return [] if found is None else [found]
