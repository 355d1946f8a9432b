"""Remedies that several finders share: finder.py and refusals.py check permissions, upgrade_controller.py webhooks."""

from __future__ import annotations

from upgrade_manager.api.keys import HARVESTER_SYSTEM, MANAGER
from upgrade_manager.api.remedy import Remedy

#: The command that lists configurations with the names of their webhooks; a refusal contains such a name.
WEBHOOKS = (
    "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations "
    "-o 'custom-columns=KIND:.kind,NAME:.metadata.name,WEBHOOKS:.webhooks[*].name'"
)


#: The manager's account.
ACCOUNT = f"system:serviceaccount:{HARVESTER_SYSTEM}:{MANAGER}"


def permissions(namespace: str) -> Remedy:
    """Return the check of what the manager may read and write there; an empty namespace stands for the cluster."""
    place = f" -n {namespace}" if namespace else ""
    command = f"kubectl auth can-i --list{place} --as={ACCOUNT}"
    return Remedy("Check the manager's permissions (deploy/rbac)", command=command)
