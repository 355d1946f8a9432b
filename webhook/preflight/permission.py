"""The permissions that the user of `upgrade-manager preflight` lacks, with the role that grants them.

deploy/rbac/preflight.yaml has the role. gate.py collects the permissions while the checks run.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import FLEET_LOCAL, MANAGER
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.kube.resources import SECRETS

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.errors import Forbidden
    from webhook.check import Check

ROLE = f"{MANAGER}-preflight"
#: The role that may create plans, and with it run the dry-run.
EDITOR = f"{MANAGER}-editor"
_SELF_REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
_SELF_REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
#: The role leaves it out.
_NO_SECRETS = (
    f"You need list on {SECRETS.name} in {FLEET_LOCAL}, which hold the nodes' credentials and show which cordoned "
    "nodes an earlier plan holds: let an administrator run this command"
)
#: In the command, where the API server does not say who the user is: Kubernetes before 1.28.
_UNKNOWN = "USER"


@dataclass(slots=True)
class Permissions:
    """The resources that the user may not list, in the order of the first refusals."""

    missing: dict[str, None] = field(default_factory=dict)

    def message(self, check: Check, error: Forbidden) -> str:
        """Return the message about a check that lacks a permission, and remember the permission."""
        return (
            self.needed(error) or f"check {check.name!r} cannot be made: {error}. Bind ClusterRole {ROLE} to yourself"
        )

    def needed(self, error: Forbidden) -> str:
        """Return the sentence about the permission, and remember it; empty if the error does not show which."""
        kind, group = objects.text(error.details, "kind"), objects.text(error.details, "group")
        resource = f"{kind}.{group}" if group else kind
        if not kind or resource == SECRETS.name:
            return kind and _NO_SECRETS
        self.missing[resource] = None
        return f"You need list on {resource}: bind ClusterRole {ROLE} to yourself"


def needs(verb: str, resource: str, role: str) -> str:
    """Return the sentence about a permission of another role."""
    return f"You need {verb} on {resource}: bind ClusterRole {role} to yourself"


async def bind_commands(client: Client, *roles: str) -> tuple[str, ...]:
    """Return the commands with which an administrator binds the roles to the user."""
    if not roles:
        return ()
    try:
        response = await client.raw("POST", _SELF_REVIEWS, body=_SELF_REVIEW)
        user = objects.text(json.loads(response.body), "status", "userInfo", "username")
    except (KubeError, ValueError):
        user = ""
    return tuple(_bind(role, user or _UNKNOWN) for role in roles)


def _bind(role: str, user: str) -> str:
    name = shlex.quote(f"{role}:{user}".replace("/", "-").replace("%", "-"))
    return f"kubectl create clusterrolebinding {name} --clusterrole={role} --user={shlex.quote(user)}"
