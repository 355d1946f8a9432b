"""Writes of the manager that are refused: an error that lasts becomes a blocker. The reconciler records them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.api.keys import LABEL_JOB_TYPE, LABEL_NODE, MANAGER
from upgrade_manager.api.remedy import Change, Remedy, saving
from upgrade_manager.api.text import namespaced_name, one_line
from upgrade_manager.blockers.remedy import ACCOUNT, WEBHOOKS, permissions
from upgrade_manager.kube.errors import KubeError, policy_refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Container
    from datetime import datetime

    from upgrade_manager.kube.errors import WrittenObject

#: A webhook that restarts refuses writes for less time.
OVERDUE = timedelta(seconds=30)
#: The shortest time until a refusal is overdue: the calendar may lag behind the timer that waits for it.
_LEAST = timedelta(seconds=0.1)
#: The webhook's name in the API server's message; the response has no field for the name.
_WEBHOOK = re.compile(r'webhook "([0-9A-Za-z.-]{1,253})"')
_POLICY = re.compile(r"ValidatingAdmissionPolicy '([0-9A-Za-z.-]{1,253})'")
#: Prints kind and name of the configuration that lists the webhook; a JSONPath cannot compare several webhooks.
_LISTING = (
    "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations "
    "-o go-template='{{{{range $c := .items}}}}"
    '{{{{range .webhooks}}}}{{{{if eq .name "{}"}}}}{{{{$c.kind}}}}/{{{{$c.metadata.name}}}} {{{{end}}}}{{{{end}}}}'
    "{{{{end}}}}'"
)
#: The verbs of requests as nouns.
_VERBS = {"create": "creating", "patch": "changing", "update": "changing", "delete": "removing"}
#: The prefix of the names of the policies in deploy/admission-policies.
_OWN_POLICIES = f"{MANAGER}-"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refusal:
    since: datetime
    message: str
    #: The write with its object, as a noun phrase.
    write: str
    #: The message of the ValidatingAdmissionPolicy that refused the write; empty for another refusal.
    policy: str


class Refusals:
    """Remembers, by the plan's uid, the writes that were refused since the plan's last reconcile without an error."""

    def __init__(self) -> None:
        self._plans: dict[str, dict[WrittenObject, _Refusal]] = {}

    def record(
        self, uid: str, error: Exception, *, known_since: Callable[[str, str], datetime | None], now: datetime
    ) -> None:
        """Remember the error of a write that the API server or a webhook refused; ignore an error without a response.

        `known_since` returns the time since which the object of a kind and name is recorded as a blocker.
        """
        if not isinstance(error, KubeError) or error.written is None or not error.status:
            return
        plan, written = self._plans.setdefault(uid, {}), error.written
        known = plan[written].since if written in plan else known_since(written.kind, written.name)
        since, policy = known or now, policy_refusal(error)
        plan[written] = _Refusal(since=since, message=str(error), write=_write(written), policy=policy)

    def blockers(self, uid: str, *, is_over: bool, now: datetime) -> list[Blocker]:
        """Return the writes that have been refused for longer than OVERDUE; `is_over` is True after the upgrade."""
        reason = BlockerReason.CLEANUP_REFUSED if is_over else BlockerReason.WRITE_REFUSED
        return [
            Blocker(
                reason=reason,
                kind=written.kind,
                namespace=written.namespace,
                name=written.name or "*",
                message=_message(refusal),
                remedies=_remedies(written, refusal),
                since=refusal.since,
            )
            for written, refusal in self._plans.get(uid, {}).items()
            if now - refusal.since >= OVERDUE
        ]

    def next_overdue(self, uid: str, *, now: datetime) -> float | None:
        """Return the seconds until another refusal is overdue; None without another refusal."""
        ages = (now - refusal.since for refusal in self._plans.get(uid, {}).values())
        left = min((OVERDUE - age for age in ages if age < OVERDUE), default=None)
        return None if left is None else max(left, _LEAST).total_seconds()

    def keep(self, uids: Container[str]) -> None:
        """Forget the refusals of all other plans."""
        self._plans = {uid: plan for uid, plan in self._plans.items() if uid in uids}

    def clear(self, uid: str) -> None:
        """Forget the plan's refusals, after a reconcile without an error."""
        self._plans.pop(uid, None)


def _write(written: WrittenObject) -> str:
    """Return the write with its object, such as "creating the pre-drain Job of node-0"."""
    verb = _VERBS.get(written.verb, "a write of")
    if not written.name:
        return f"{verb} {written.kind}s in {written.namespace}"
    type_, node = (written.labels.get(label) for label in (LABEL_JOB_TYPE, LABEL_NODE))
    if type_ and node:
        return f"{verb} the {type_} {written.kind} of {node}"
    return f"{verb} {written.kind} {namespaced_name(written.namespace, written.name)}"


def _message(refusal: _Refusal) -> str:
    """Return the API server's words; of a webhook's refusal, the webhook, the cause and the write."""
    text = one_line(refusal.message)
    webhook = _WEBHOOK.search(text)
    if webhook is None or refusal.policy:
        return refusal.message
    # Behind the webhook's URL, or behind its denial; of a connection, behind the address.
    cause = text[webhook.end() :].rpartition('": ')[2].removeprefix(" denied the request").lstrip(": ")
    cause = cause.rpartition(": connect: ")[2]
    return f"Webhook {webhook[1]} ({cause or 'no cause is reported'}) blocks {refusal.write}"


def _remedies(written: WrittenObject, refusal: _Refusal) -> tuple[Remedy, ...]:
    policy = _POLICY.search(refusal.policy)
    if policy:
        return _policy_remedies(policy[1])
    webhook = _WEBHOOK.search(one_line(refusal.message))
    if webhook:
        return _webhook_remedies(webhook[1])
    return permissions(written.namespace), Remedy("Check the webhooks", command=WEBHOOKS)


def _webhook_remedies(webhook: str) -> tuple[Remedy, ...]:
    """Return the remedies for a webhook, whose configuration has another name, which the refusal does not contain."""
    file = f"webhook-{webhook}.yaml"
    return (
        Remedy(f'Start the service of webhook "{webhook}", or let it allow the write'),
        Remedy(
            "Or save the configuration that lists it",
            command=saving(f"kubectl get $({_LISTING.format(webhook)}) -o yaml", file),
        ),
        Remedy(
            "And delete it until the upgrade has ended",
            command=f"kubectl delete -f {file}",
            undo=f"kubectl create -f {file}",
            changes=(Change(kind="Webhook", name=webhook, field="configuration", original=True),),
        ),
    )


def _policy_remedies(policy: str) -> tuple[Remedy, ...]:
    """Return the remedy for a policy: the manager's policies contain its options, other policies belong to users."""
    shown = f"kubectl get validatingadmissionpolicies {policy} -o yaml"
    if policy.startswith(_OWN_POLICIES):
        return (
            Remedy("Compare the policy with the manager's flags and environment", command=shown),
            Remedy(
                "Install the policies of this version with the same values: toolkit.imagePrefixes of the chart, or "
                "deploy/admission-policies"
            ),
        )
    return (
        Remedy("Let the policy allow the write", command=shown),
        Remedy(
            f"Or let its binding leave out the user {ACCOUNT}", command="kubectl get validatingadmissionpolicybindings"
        ),
    )
