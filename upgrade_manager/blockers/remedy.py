"""Remedies: the actions of a user against a blocker, in one line."""

from __future__ import annotations

from upgrade_manager.api.keys import HARVESTER_SYSTEM

#: The command that lists configurations with the names of their webhooks; a refusal contains such a name.
WEBHOOKS = (
    "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations "
    "-o 'custom-columns=KIND:.kind,NAME:.metadata.name,WEBHOOKS:.webhooks[*].name'"
)


#: The manager's account.
ACCOUNT = f"system:serviceaccount:{HARVESTER_SYSTEM}:harvester-upgrade-manager"


def permissions(namespace: str) -> str:
    """Return the check of what the manager may read and write there; an empty namespace stands for the cluster."""
    place = f" -n {namespace}" if namespace else ""
    return f"Check the manager's permissions (deploy/rbac): kubectl auth can-i --list{place} --as={ACCOUNT}"


def steps(*actions: str) -> str:
    """Return the actions in their order; several are numbered, which shows where a command ends."""
    if len(actions) == 1:
        return actions[0]
    return " ".join(f"({number}) {action}" for number, action in enumerate(actions, 1))
