"""The accounts besides the administrator on both API servers, and their permissions."""

from __future__ import annotations

from typing import Any

from hack.control_plane.control_plane import Account
from tests.support.server.raw_client import RawClient

#: Has no permissions besides those of every authenticated user.
BOB = Account(token="bob", name="bob", groups=("developers",))  # noqa: S106  # on loopback only
ACCOUNTS = (BOB,)
RBAC = "rbac.authorization.k8s.io"
_CREATED = 201


async def grant(admin: RawClient, user: str, *rules: dict[str, Any], name: str = "given", namespace: str = "") -> None:
    """Grant the rules to a user, in a namespace or in the cluster; `name` names role and binding.

    The real server's authorizer watches roles: poll until the grant is effective.
    """
    kind = "Role" if namespace else "ClusterRole"
    root = f"/apis/{RBAC}/v1" + (f"/namespaces/{namespace}" if namespace else "")
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
    }
    plural = kind.lower()
    for path, body in ((f"{plural}s", {"metadata": {"name": name}, "rules": [*rules]}), (f"{plural}bindings", binding)):
        answer = await admin.post(f"{root}/{path}", body)
        assert answer.status == _CREATED, answer.body
