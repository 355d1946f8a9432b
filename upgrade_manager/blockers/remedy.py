"""Remedies: the actions of a user against a blocker, in one line."""

from __future__ import annotations

#: The command that lists configurations with the names of their webhooks; a refusal contains such a name.
WEBHOOKS = (
    "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations "
    "-o 'custom-columns=KIND:.kind,NAME:.metadata.name,WEBHOOKS:.webhooks[*].name'"
)


def steps(*actions: str) -> str:
    """Return the actions in their order; several are numbered, which shows where a command ends."""
    if len(actions) == 1:
        return actions[0]
    return " ".join(f"({number}) {action}" for number, action in enumerate(actions, 1))
