"""One reconcile as phases see it.

reconciler_factory.py makes the services, reconciler.py a context for each reconcile; status.py holds the status, which
`persist` pins to the plan's resourceVersion.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import structlog

from upgrade_manager.api.annotations import PlanAnnotations
from upgrade_manager.api.attribution import NOT_RECORDED
from upgrade_manager.api.keys import FINALIZER, LABEL_ACTIVE, LABEL_PLAN_UID, MANAGER_ANNOTATIONS
from upgrade_manager.api.names import repo_service_name
from upgrade_manager.api.spec import UpgradePlanSpec
from upgrade_manager.api.status import ToolkitImageStatus
from upgrade_manager.api.text import bounded_line
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import AlreadyExists, Conflict, NotFound, PreconditionFailed
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.pipeline import plan_objects, write_log
from upgrade_manager.pipeline.errors import ForeignObject, RetryError
from upgrade_manager.pipeline.informers import Write
from upgrade_manager.pipeline.status import StatusPatch
from upgrade_manager.resources.jobs import JobSettings
from upgrade_manager.resources.owner import Owner, described_owner
from upgrade_manager.resources.suc_plan import PlanSettings
from upgrade_manager.resources.toolkit import ToolkitImage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.clock import Clock
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.patch import Patch
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.kube.store import Store
    from upgrade_manager.pipeline.dependencies import Settings
    from upgrade_manager.pipeline.events import PlanEvents
    from upgrade_manager.pipeline.informers import InformerSpec, PlanInformers
    from upgrade_manager.pipeline.metrics import UpgradeMetrics
    from upgrade_manager.preflight.check import Preflight
    from upgrade_manager.release.repository_client import RepositoryClient


#: The value of the active plan's label.
_ACTIVE = "true"
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedPlan:
    """The plan's spec and annotations, typed, and the plan as an owner."""

    spec: UpgradePlanSpec
    annotations: PlanAnnotations
    #: The spec as it was read.
    raw_spec: Object
    owner: Owner

    @classmethod
    def of(cls, plan: Object, *, known: ParsedPlan | None = None) -> ParsedPlan:
        """Parse spec and annotations; the status, which grows with the cluster, is left to `StatusPatch`.

        `known` is an earlier version of the plan; a spec that has not changed since is not parsed again.
        """
        raw_spec = objects.spec(plan)
        spec = known.spec if known is not None and known.raw_spec == raw_spec else UpgradePlanSpec.read(raw_spec)
        owner, annotations = Owner.of(plan, has_unlabeled=False), PlanAnnotations(objects.annotations_of(plan))
        return cls(spec=spec, annotations=annotations, raw_spec=raw_spec, owner=owner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The collaborators that the reconciles of all plans share."""

    client: Client
    repository: RepositoryClient
    events: PlanEvents
    metrics: UpgradeMetrics
    preflight: Preflight
    settings: Settings
    clock: Clock


@dataclass(slots=True, kw_only=True)
class ReconcileContext:
    """One reconcile of one plan: the state that phases read, and the methods with which they write.

    The reconciler creates one for each reconcile (`of`). Only the methods here assign fields; phases change the status
    through `status`, and everything else through methods of the context.
    """

    #: The plan as the API server last returned it: at first from the cache; `_write_plan` sets it after each write.
    raw: Object
    #: The parsed form of `raw`, set together with `raw`.
    plan: ParsedPlan
    #: Begins with the status of `raw`; the reconciler and the phases change it, `persist` writes the difference, and
    #: `_write_plan` rebases it on the response.
    status: StatusPatch
    #: `of` sets the fields from here to `now` once; all but `informers` belong to the process.
    client: Client
    repository: RepositoryClient
    #: The plan's informers, which outlive the reconcile.
    informers: PlanInformers
    events: PlanEvents
    metrics: UpgradeMetrics
    preflight: Preflight
    settings: Settings
    now: Callable[[], datetime]
    #: Writes of this reconcile, which the caches must show before the next one. `_record_write` appends a write after
    #: its response; the reconciler waits for the writes at the end.
    writes: list[Write] = field(default_factory=list)

    @classmethod
    def of(cls, plan: Object, services: Services, informers: PlanInformers, *, known: ParsedPlan | None = None) -> Self:
        """Begin a reconcile of the plan; `known` is the plan as the last reconcile has parsed it."""
        return cls(
            raw=plan,
            plan=ParsedPlan.of(plan, known=known),
            status=StatusPatch(plan, now=services.clock.now),
            client=services.client,
            repository=services.repository,
            informers=informers,
            events=services.events,
            metrics=services.metrics,
            preflight=services.preflight,
            settings=services.settings,
            now=services.clock.now,
        )

    @property
    def owner(self) -> Owner:
        """The plan as the owner of the objects created for it."""
        return replace(self.plan.owner, has_unlabeled=True) if self.informers.has_unlabeled else self.plan.owner

    @property
    def target(self) -> str:
        """The release to upgrade to, for messages; until its metadata is read, the plan's version or image."""
        return self.release or self.plan.spec.version or f"image {self.plan.spec.image}"

    @property
    def toolkit(self) -> ToolkitImage:
        """The toolkit image that Initialize has recorded. Raises RetryError."""
        recorded = ToolkitImageStatus.read(self.status["toolkitImage"])
        if not recorded.repository:
            raise RetryError("status.toolkitImage lacks the image that Initialize records. Create a new plan")
        return ToolkitImage(repository=recorded.repository, tag=recorded.tag, digest=recorded.digest)

    @property
    def creator(self) -> str:
        """The user who created the plan, for log lines and events."""
        return self.status["createdBy"] or NOT_RECORDED

    def record_creator(self) -> None:
        """Copy the user who created the plan from its annotation, if admission has recorded one."""
        creator = bounded_line(self.plan.annotations.created_by)
        if creator:
            self.status["createdBy"] = creator

    @property
    def release(self) -> str:
        """The release's Harvester version; empty until its metadata is read."""
        return (self.status["releaseMetadata"] or {}).get("harvester") or ""

    @property
    def checksums(self) -> dict[str, str]:
        """SHA-256 of the ISO's files by path; empty if the files are not checked."""
        found: dict[str, str] = (self.status["checksums"] or {}).get("files") or {}
        return found

    @property
    def job_settings(self) -> JobSettings:
        """Settings of the Jobs that the manager creates."""
        return JobSettings(
            image=self.toolkit, service_account=self.settings.job_service_account, checksums=self.checksums
        )

    @property
    def plan_settings(self) -> PlanSettings:
        """Settings of the system-upgrade-controller Plans."""
        return PlanSettings(
            image=self.toolkit, service_account=self.settings.plan_service_account, checksums=self.checksums
        )

    @property
    def repo_url(self) -> str:
        """The upgrade repository's base URL, without a trailing slash."""
        service = repo_service_name(self.owner.name)
        url = self.settings.repo_url.replace("{plan}", self.owner.name).replace("{service}", service)
        return url.rstrip("/")

    async def watch(self, spec: InformerSpec) -> Store:
        """Return the store of these objects; their changes trigger reconciles of the plan."""
        return await self.informers.watch(spec)

    async def watch_all(self, *specs: InformerSpec) -> list[Store]:
        """Return several stores, whose first lists run concurrently."""
        return await self.informers.watch_all(*specs)

    async def ensure(self, resource: Resource, manifest: Object) -> None:
        """Create the object if it does not exist. Raises ForeignObject if the object has another owner."""
        try:
            created = await plan_objects.create(self.client, resource, manifest)
        except AlreadyExists as error:
            name, namespace = objects.name(manifest), objects.namespace(manifest)
            found = await self.client.find(resource, name, namespace=namespace, metadata_only=True)
            if found is None:
                # The object was deleted between the requests; a webhook with this response is reported.
                raise PreconditionFailed(str(error)) from error
            self.check_owned(resource, found)
            self._check_labeled(resource, found, error)
            created = found
        else:
            write_log.created(resource, manifest, creator=self.creator)
        self._record_write(resource, created)

    def _check_labeled(self, resource: Resource, found: Object, error: AlreadyExists) -> None:
        """Raise PreconditionFailed for an object that an earlier version created after the plan was taken over."""
        if LABEL_PLAN_UID not in objects.labels(found) and not self.informers.has_unlabeled:
            self.informers.is_taken_over = False
            raise PreconditionFailed(f"{resource.kind} {objects.name(found)} is not taken over") from error

    async def ensure_unread(self, resource: Resource, manifest: Object) -> None:
        """Create an object of a kind that the manager may not read; its name must contain the plan's uid."""
        try:
            created = await plan_objects.create(self.client, resource, manifest)
        except AlreadyExists:
            return
        write_log.created(resource, manifest, creator=self.creator)
        self._record_write(resource, created)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Patch,
        *,
        namespace: str = "",
        metadata_only: bool = False,
        event: str = "",
    ) -> None:
        """Patch an object that another controller owns; `event` names the patch in the log.

        Raises PreconditionFailed if the patch is pinned and the object has changed.
        """
        try:
            patched = await self.client.patch(resource, name, patch, namespace=namespace, metadata_only=metadata_only)
        except Conflict as error:
            await self._check_pinned(resource, name, patch, namespace=namespace, conflict=error)
            raise
        write_log.patched(resource, name, patch, namespace=namespace, event=event)
        self._record_write(resource, patched)

    async def mark(
        self, resource: Resource, name: str, metadata: Object, *, namespace: str = "", event: str = ""
    ) -> None:
        """Set fields of an object's metadata, if it still exists."""
        try:
            patch = MergePatch({"metadata": metadata})
            await self.patch(resource, name, patch, namespace=namespace, metadata_only=True, event=event)
        except NotFound:
            log.info("object not found, metadata not set", kind=resource.kind, object=name)

    async def remove(self, resource: Resource, name: str, *, namespace: str, uid: str) -> None:
        """Delete the object of that uid, if it still exists."""
        await plan_objects.remove(self.client, resource, name, namespace=namespace, uid=uid)

    async def remove_all(self, resource: Resource, *, namespace: str, selector: str = "") -> None:
        """Delete the plan's objects of that kind, by their uid label or by another selector."""
        selector = selector or self.owner.selector()
        await self.client.delete_collection(resource, namespace=namespace, label_selector=selector)
        write_log.removed_all(resource, namespace=namespace, selector=selector)

    async def annotate(self, values: Mapping[str, str | None]) -> None:
        """Annotate the plan. Like all writes of the plan, raises PreconditionFailed if the plan has changed."""
        await self._write_metadata({"annotations": dict(values)})

    async def claim(self) -> None:
        """Set finalizer and label, and remove annotations that were copied with the manifest of an earlier plan."""
        present = objects.annotations_of(self.raw)
        copied: dict[str, Any] = {key: None for key in MANAGER_ANNOTATIONS if key in present}
        await self._write_metadata({**self._held(active=True), **({"annotations": copied} if copied else {})})

    async def hold(self, *, active: bool) -> None:
        """Set the finalizer, and the label if the plan is active, unless the plan has them.

        `kubectl replace` removes finalizer and label if its manifest lacks them.
        """
        is_labeled = objects.labels(self.raw).get(LABEL_ACTIVE) == _ACTIVE
        if FINALIZER not in objects.finalizers(self.raw) or (active and not is_labeled):
            await self._write_metadata(self._held(active=active))

    async def end_hold(self) -> None:
        """Remove the finalizer and the label of the active plan, if the plan has them."""
        others = [name for name in objects.finalizers(self.raw) if name != FINALIZER]
        has_finalizer = len(others) < len(objects.finalizers(self.raw))
        metadata = {**({"finalizers": others} if has_finalizer else {}), **self._inactive()}
        if metadata:
            await self._write_metadata(metadata)

    async def deactivate(self) -> None:
        """Remove the label of the active plan from this plan; users may have copied the label with a manifest."""
        if metadata := self._inactive():
            await self._write_metadata(metadata)

    def _held(self, *, active: bool) -> Object:
        others = [name for name in objects.finalizers(self.raw) if name != FINALIZER]
        return {"finalizers": [*others, FINALIZER], **({"labels": {LABEL_ACTIVE: _ACTIVE}} if active else {})}

    def _inactive(self) -> Object:
        return {"labels": {LABEL_ACTIVE: None}} if LABEL_ACTIVE in objects.labels(self.raw) else {}

    async def _write_metadata(self, metadata: Object) -> None:
        await self._write_plan(MergePatch({"metadata": metadata}), subresource="")

    async def persist(self) -> bool:
        """Write a changed status, with events and metrics of new phases; return True if the status was written.

        Later log lines have the phase that is written.
        """
        self.status.summarize()
        difference = self.status.difference()
        if not difference:
            return False
        write_log.in_phase(self.status.phase)
        before, reached = self.raw, self.status.unwritten_phases()
        await self._write_plan(MergePatch({"status": difference}), subresource="status")
        if write_log.status_patched(before, reached, difference):
            self.metrics.progress.moved(self.raw, self.now())
        if reached:
            self.events.phases(self.raw, reached)
            self.metrics.recorded(self.raw, reached)
        return True

    async def persist_pinned(self) -> None:
        """Write the status before a step, or compare the plan without a change. Raises PreconditionFailed."""
        read = objects.resource_version(self.raw)
        if not await self.persist() and await plan_objects.version(self.client, UPGRADE_PLANS, self.owner.name) != read:
            raise PreconditionFailed(f"UpgradePlan {self.owner.name} has changed")

    async def _write_plan(self, patch: MergePatch, *, subresource: str) -> None:
        pinned, before = patch.at(objects.resource_version(self.raw)), self.raw
        try:
            self.raw = await self.client.patch(UPGRADE_PLANS, self.owner.name, pinned, subresource=subresource)
        except Conflict as error:
            await self._check_pinned(UPGRADE_PLANS, self.owner.name, pinned, conflict=error)
            raise
        if not subresource:
            write_log.patched(UPGRADE_PLANS, self.owner.name, patch, before=before)
        self.plan = ParsedPlan.of(self.raw, known=self.plan)
        # The patch was pinned to a resourceVersion, so the response has no status changes of other writers.
        self.status.rebase(self.raw, keep=not subresource)
        self._record_write(UPGRADE_PLANS, self.raw)

    async def _check_pinned(
        self, resource: Resource, name: str, patch: Patch, *, conflict: Conflict, namespace: str = ""
    ) -> None:
        """Raise PreconditionFailed if the object of a pinned patch has changed; else a webhook refused the patch."""
        if not isinstance(patch, MergePatch) or not patch.resource_version:
            return
        if await plan_objects.version(self.client, resource, name, namespace=namespace) != patch.resource_version:
            raise PreconditionFailed(str(conflict)) from conflict

    def _record_write(self, resource: Resource, written: Object) -> None:
        version = objects.resource_version(written)
        self.writes.append(Write(resource=resource, namespace=objects.namespace(written), resource_version=version))

    def check_owned(self, resource: Resource, found: Object) -> None:
        """Raise ForeignObject unless the object was created for this plan."""
        if self.owner.owns(found):
            return
        owners = described_owner(found)
        whose = (
            f"belongs to {owners}, not to this plan (uid {self.owner.uid})"
            if owners
            else "was not created by this plan"
        )
        name = f"{objects.namespace(found)}/{objects.name(found)}".lstrip("/")
        raise ForeignObject(f"{resource.kind} {name} already exists and {whose}; delete it to continue", found=found)
