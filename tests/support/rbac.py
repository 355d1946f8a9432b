"""Rights for somebody who has none, on either API server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.support.wire import Wire

RBAC = "rbac.authorization.k8s.io"
_CREATED = 201


async def grant(admin: Wire, user: str, *rules: dict[str, Any], name: str = "given", namespace: str = "") -> None:
    """Let a user do what the rules say, in a namespace or in the whole cluster; `name` is the role's and the binding's.

    The real server learns of it by a watch: wait until the user may do something of it.
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
