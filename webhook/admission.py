"""What a create, an update and a delete of a plan have to pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.api.conditions import find_condition
from upgrade_manager.api.keys import PREFIX
from upgrade_manager.api.phases import PhaseName
from webhook import fields
from webhook.catalogue import CHECKS
from webhook.check import Check, Finding, Subject
from webhook.checks.pause_list import CHECK as PAUSE_LIST
from webhook.checks.pause_list import find_unknown
from webhook.review import Verdict
from webhook.runner import run_checks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.check import CheckResult
    from webhook.cluster import ClusterReader
    from webhook.review import AdmissionRequest

ANNOTATION_SKIP_WEBHOOK = f"{PREFIX}/skip-webhook"
ANNOTATION_ALLOW_DELETION = f"{PREFIX}/allow-deletion"
#: Phases in which Helm releases or nodes change: nothing could undo an upgrade that is stopped then.
_UNDELETABLE = frozenset({PhaseName.CLUSTER_UPGRADE.active, PhaseName.NODE_UPGRADE.active})


class Admission:
    """Decides about the requests for plans."""

    def __init__(self, cluster: ClusterReader, *, checks: Sequence[Check] = CHECKS) -> None:
        self._cluster = cluster
        self._checks = checks

    async def decide(self, request: AdmissionRequest) -> Verdict:
        """Return the verdict; requests for subresources and other operations pass."""
        if request.subresource:
            return Verdict()
        match request.operation:
            case "CREATE":
                return await self._create(request)
            case "UPDATE":
                return await self._update(request)
            case "DELETE":
                return _delete(request)
            case _:
                return Verdict()

    async def _create(self, request: AdmissionRequest) -> Verdict:
        subject = Subject.of(request.new, cluster=self._cluster)
        if subject.annotations.raw.get(ANNOTATION_SKIP_WEBHOOK) == "true":
            return Verdict()
        return _verdict(await run_checks(self._checks, subject))

    async def _update(self, request: AdmissionRequest) -> Verdict:
        """Check the names that the update adds to the pause list."""
        if fields.text(request.new, "metadata", "deletionTimestamp"):
            return Verdict()
        new, old = (Subject.of(plan, cluster=self._cluster) for plan in (request.new, request.old))
        known = set(old.spec.node_upgrade_option.pause_nodes)
        names = enumerate(new.spec.node_upgrade_option.pause_nodes)
        added = {index: name for index, name in names if name not in known}

        async def find(subject: Subject) -> Iterable[Finding]:
            return await find_unknown(subject, added)

        return _verdict(await run_checks([Check(name=PAUSE_LIST.name, field=PAUSE_LIST.field, find=find)], new))


def _verdict(results: Sequence[CheckResult]) -> Verdict:
    return Verdict(
        findings=[finding for result in results for finding in result.findings],
        warnings=[result.warning for result in results if result.warning],
    )


def _delete(request: AdmissionRequest) -> Verdict:
    """Deny the deletion of a plan that is in progress, unless an annotation allows it."""
    status = fields.mapping(request.old, "status")
    progressing = find_condition(status.get("conditions"), "Progressing")
    if fields.text(progressing, "status") != "True":
        return Verdict()
    phase = fields.text(status, "currentPhase")
    if phase in _UNDELETABLE:
        message = f"UpgradePlan {request.name} cannot be deleted in phase {phase}. Wait until the phase has ended"
    elif fields.strings(request.old, "metadata", "annotations").get(ANNOTATION_ALLOW_DELETION) == "true":
        return Verdict()
    else:
        message = (
            f"UpgradePlan {request.name} is in progress (phase {phase}). To delete it, first run "
            f"kubectl annotate upgradeplans.{PREFIX} {request.name} {ANNOTATION_ALLOW_DELETION}=true"
        )
    return Verdict(findings=[Finding(message=message, field="status.currentPhase")])
