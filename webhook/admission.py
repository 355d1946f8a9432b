"""The admission of a create, an update and a delete of a plan.

server.py calls it for each review; preflight.py shares the rule of skipped checks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from upgrade_manager.api.annotations import TOOLKIT_ANNOTATIONS
from upgrade_manager.api.conditions import find_condition
from upgrade_manager.api.keys import ANNOTATION_ALLOW_DELETION, ANNOTATION_SKIP_WEBHOOK
from upgrade_manager.api.phases import PHASE_SPECS
from upgrade_manager.api.spec import MAX_NODES
from upgrade_manager.kube import objects
from upgrade_manager.kube.clock import loop_time
from upgrade_manager.kube.resources import UPGRADE_PLANS
from webhook import attempt, builtin, continuation
from webhook.catalogue import CHECKS
from webhook.check import Finding, Outcome, Subject
from webhook.checks import migration_failure, pause_before
from webhook.checks.pause_after import CHECK as PAUSE_AFTER
from webhook.checks.pause_list import CHECK as PAUSE_LIST
from webhook.checks.pause_list import find_unknown, late_pauses
from webhook.checks.toolkit_image import CHECK as TOOLKIT_IMAGE
from webhook.review import PLAN_KIND, UPGRADE_KIND, Verdict
from webhook.runner import DEADLINE, run_checks
from webhook.sharing import SnapshotReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from upgrade_manager.api.toolkit_image import ToolkitConfig
    from webhook.caches import Caches
    from webhook.check import Check, CheckResult
    from webhook.cluster import ClusterReader
    from webhook.review import AdmissionRequest

#: Phases in which Helm releases or nodes change, after which a stopped upgrade cannot be undone.
_UNDELETABLE = frozenset(spec.active for spec in PHASE_SPECS if not spec.deletable)
#: Findings in a response; kubectl prints all of them.
MAX_FINDINGS = 100
_MORE = "and {:,} more. To print all, run upgrade-manager preflight -f plan.yaml"
_RULES = "Correct the rules of its ValidatingWebhookConfiguration"
#: Kubernetes before 1.15 sends no oldObject for a deletion.
_NO_OBJECT = "The review lacks the object that is created, updated or deleted. Use Kubernetes 1.15 or later"


class Admission:
    """Decides about the requests for plans, and denies unknown kinds and operations."""

    def __init__(
        self, cluster: ClusterReader, *, caches: Caches, toolkit: ToolkitConfig, checks: Sequence[Check] = CHECKS
    ) -> None:
        """`cluster` reads the latest state; `toolkit` are the flags about the toolkit image."""
        self._cluster = cluster
        self._caches = caches
        self._toolkit = toolkit
        self._checks = checks
        #: The number of running reviews of new plans.
        self._running = 0

    async def decide(self, request: AdmissionRequest) -> Verdict:
        """Return the verdict."""
        if request.kind == UPGRADE_KIND:
            return await builtin.decide(request, self._cluster)
        if request.kind != PLAN_KIND:
            return _denied(f"This webhook reviews {PLAN_KIND} only. {_RULES}")
        return await self._decide(request)

    async def _decide(self, request: AdmissionRequest) -> Verdict:
        """Return the verdict about a plan; requests for subresources pass."""
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
                return _denied(f"This webhook reviews CREATE, UPDATE and DELETE only. {_RULES}")

    async def _create(self, request: AdmissionRequest) -> Verdict:
        if not objects.mapping(request.new):
            return _denied(_NO_OBJECT)
        if is_skipped(request.new):
            return Verdict()
        subject = self._subject(request.new)
        if denied := _too_many_names(subject):
            return denied
        self._running += 1
        try:
            return _verdict(await self._checked(subject))
        finally:
            self._running -= 1
            if not self._running:
                # The caches start after the last review, because filling them would slow down other reviews.
                self._caches.start()

    async def _update(self, request: AdmissionRequest) -> Verdict:
        """Check a requested attempt, added pauses and continuations, a changed toolkit image, and a new Wait."""
        if not objects.mapping(request.new) or not objects.mapping(request.old):
            return _denied(_NO_OBJECT)
        if objects.text(request.new, "metadata", "deletionTimestamp"):
            return Verdict()
        new, old = self._subject(request.new), self._subject(request.old)
        known = set(old.spec.node_upgrade_option.pause_nodes)
        names = enumerate(new.spec.node_upgrade_option.pause_nodes)
        added = {index: name for index, name in names if name not in known}
        changed = [TOOLKIT_IMAGE] if _toolkit(request.new) != _toolkit(request.old) else []
        waits = migration_failure.requests_wait(request.new)
        is_raised = attempt.is_raised(new=request.new, old=request.old)
        # Another toolkit image may be of a kind that cannot do what the plan has requested before.
        is_new = bool(changed) or is_raised or not migration_failure.requests_wait(request.old)
        changed += [migration_failure.of_update(request.old)] if is_new and waits else []
        changed += [PAUSE_AFTER] if _pauses_after(new) != _pauses_after(old) else []
        changed += continuation.checks_of(new=request.new, old=request.old)
        changed += pause_before.checks_of(new=request.new, old=request.old)
        if is_raised:
            if is_skipped(request.new):
                return Verdict()
            checks = [*attempt.checks_of(request.old), *changed]
            return _too_many_names(new) or _verdict(await run_checks(checks, new))

        async def find(subject: Subject) -> Iterable[Finding]:
            return [*await find_unknown(subject, added), *late_pauses(request.new, added)]

        pauses = replace(PAUSE_LIST, find=find)
        checks = [*([pauses] if added else []), *changed]
        if not checks:
            return Verdict()
        return (_too_many_names(new) if added else None) or _verdict(await run_checks(checks, new))

    def _subject(self, plan: object) -> Subject:
        return Subject.of(plan, cluster=SnapshotReader(self._cluster), toolkit=self._toolkit)

    async def _checked(self, subject: Subject) -> list[CheckResult]:
        """Run all checks on synced caches first; repeat failed checks on the latest state, which decides."""
        ends = loop_time() + DEADLINE
        cached = await self._caches.reader()
        results: dict[str, CheckResult] = {}
        if cached is not None:
            on_caches = replace(subject, cluster=SnapshotReader(cached))
            found = await run_checks(self._checks, on_caches, deadline=ends - loop_time())
            results = {result.name: result for result in found}
        passed = {name for name, result in results.items() if result.outcome is not Outcome.FAILED}
        left = [check for check in self._checks if check.name not in passed]
        # If no time is left, the cluster has not responded to the first attempt.
        if (remaining := ends - loop_time()) > 0:
            results |= {result.name: result for result in await run_checks(left, subject, deadline=remaining)}
        return [results[check.name] for check in self._checks]


def is_skipped(plan: object) -> bool:
    """Return True if the plan's creation and its attempts are not checked."""
    return objects.strings(plan, "metadata", "annotations").get(ANNOTATION_SKIP_WEBHOOK) == "true"


def _too_many_names(subject: Subject) -> Verdict | None:
    """Deny a pause list that is longer than the schema allows, before each name gets a finding."""
    names = subject.spec.node_upgrade_option.pause_nodes
    if len(names) <= MAX_NODES:
        return None
    return _denied(f"The list has {len(names)} names. Use at most {MAX_NODES}", field=PAUSE_LIST.field)


def _verdict(results: Sequence[CheckResult]) -> Verdict:
    return Verdict(
        findings=_shortened([result.findings for result in results]),
        warnings=[warning for result in results for warning in result.warnings],
        checks=results,
    )


def _shortened(found: Sequence[Sequence[Finding]]) -> list[Finding]:
    """Return the findings of all checks, each once; if these are too many, return some findings of every check."""
    unique = [list(dict.fromkeys(findings)) for findings in found]
    numbered = [(index, check, one) for check, findings in enumerate(unique) for index, one in enumerate(findings)]
    numbered.sort(key=lambda entry: entry[:2])
    kept = sorted(numbered[:MAX_FINDINGS], key=lambda entry: (entry[1], entry[0]))
    findings = [finding for _, _, finding in kept]
    if left := len(numbered) - len(kept):
        findings.append(Finding(problem=_MORE.format(left), field="spec"))
    return findings


def _pauses_after(subject: Subject) -> int | None:
    return subject.spec.node_upgrade_option.pause_after


def _toolkit(plan: object) -> list[str | None]:
    annotations = objects.strings(plan, "metadata", "annotations")
    return [annotations.get(key) for key in TOOLKIT_ANNOTATIONS]


def _denied(message: str, *, field: str = "") -> Verdict:
    return Verdict(findings=[Finding(problem=message, field=field)])


def _delete(request: AdmissionRequest) -> Verdict:
    """Deny the deletion of a plan that is in progress, unless an annotation allows it."""
    if not objects.mapping(request.old):
        return _denied(_NO_OBJECT)
    status = objects.mapping(request.old, "status")
    progressing = find_condition(status.get("conditions"), "Progressing")
    if objects.text(progressing, "status") != "True":
        return Verdict()
    phase = objects.text(status, "currentPhase") or "unknown"
    if phase in _UNDELETABLE:
        message = (
            f"UpgradePlan {request.name} cannot be deleted in phase {phase}. Wait until the phase has ended: "
            f"kubectl get {UPGRADE_PLANS.name} {request.name} --watch"
        )
    elif objects.strings(request.old, "metadata", "annotations").get(ANNOTATION_ALLOW_DELETION) == "true":
        return Verdict()
    else:
        message = (
            f"UpgradePlan {request.name} is in progress (phase {phase}). To delete it, first run "
            f"kubectl annotate --overwrite {UPGRADE_PLANS.name} {request.name} {ANNOTATION_ALLOW_DELETION}=true"
        )
    return _denied(message, field="status.currentPhase")
