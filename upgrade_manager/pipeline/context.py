from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import structlog

from upgrade_manager.api.annotations import BadAnnotation, PlanAnnotations
from upgrade_manager.api.keys import MANAGER_ANNOTATIONS
from upgrade_manager.api.names import repo_service_name
from upgrade_manager.api.spec import UpgradePlanSpec
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import AlreadyExists, NotFound
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.pipeline.errors import ForeignObject, RetryError
from upgrade_manager.pipeline.informers import Written
from upgrade_manager.resources.jobs import JobSettings
from upgrade_manager.resources.owner import Owner
from upgrade_manager.resources.suc_plan import PlanSettings
from upgrade_manager.resources.toolkit import ToolkitImage

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.kube.patch import Patch
    from upgrade_manager.kube.resources import Resource
    from upgrade_manager.kube.store import Store
    from upgrade_manager.pipeline.events import PlanEvents
    from upgrade_manager.pipeline.informers import InformerSpec, PlanInformers
    from upgrade_manager.pipeline.metrics import UpgradeMetrics
    from upgrade_manager.pipeline.repository_client import RepositoryClient
    from upgrade_manager.pipeline.status import StatusPatch
    from upgrade_manager.preflight.check import Preflight


log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Options of the pipeline, from flags and environment."""

    #: The manager's version: the toolkit's tag until the release is known.
    version: str
    #: Base URL of the upgrade repository; {plan} is the plan's name, {service} its Service's.
    repo_url: str
    #: Service account of the Jobs, in harvester-system.
    job_service_account: str
    #: Service account of the Plans' Jobs, in cattle-system.
    plan_service_account: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedPlan:
    """The plan's spec and annotations, typed."""

    spec: UpgradePlanSpec
    annotations: PlanAnnotations


@dataclass(slots=True, kw_only=True)
class ReconcileContext:
    """One reconcile of one plan: what the phases see of it, and the few ways in which they may act."""

    #: As the API server last answered; replaced by every write.
    raw: Object
    plan: ParsedPlan
    status: StatusPatch
    client: Client
    repository: RepositoryClient
    informers: PlanInformers
    events: PlanEvents
    metrics: UpgradeMetrics
    preflight: Preflight
    settings: Settings
    #: Rancher's provisioning cluster, once it was read; writes are pinned to the version of that moment.
    cluster: Object | None = None
    #: Writes that the caches must have seen before this plan is looked at again.
    written: list[Written] = field(default_factory=list)

    @property
    def owner(self) -> Owner:
        """The plan as the owner of what is created."""
        return Owner(name=objects.name(self.raw), uid=objects.uid(self.raw))

    @property
    def toolkit(self) -> ToolkitImage:
        """The image that does the work; its tag follows the release as soon as that is known. Raises RetryError."""
        release = (self.status["releaseMetadata"] or {}).get("harvester")
        repository = self.plan.annotations.toolkit_image
        if isinstance(repository, BadAnnotation):
            raise RetryError(str(repository))
        return ToolkitImage(
            repository=repository,
            tag=self.plan.spec.upgrade or release or self.settings.version,
        )

    @property
    def job_settings(self) -> JobSettings:
        """For the builders of Jobs."""
        return JobSettings(image=self.toolkit, service_account=self.settings.job_service_account)

    @property
    def plan_settings(self) -> PlanSettings:
        """For the builders of the system-upgrade-controller's Plans."""
        return PlanSettings(image=self.toolkit, service_account=self.settings.plan_service_account)

    @property
    def repo_url(self) -> str:
        """The upgrade repository's address, without the path and without a slash at its end."""
        service = repo_service_name(self.owner.name)
        url = self.settings.repo_url.replace("{plan}", self.owner.name).replace("{service}", service)
        return url.rstrip("/")

    async def watch(self, spec: InformerSpec) -> Store:
        """The objects of that selection, and a look at the plan again whenever one of them changes."""
        return await self.informers.watch(spec)

    async def watch_all(self, *specs: InformerSpec) -> list[Store]:
        """The same for selections that are needed together: a phase that begins waits for their first lists once."""
        return await self.informers.watch_all(*specs)

    async def ensure(self, resource: Resource, manifest: Object) -> None:
        """Create it, once; an object of that name that is not ours is never adopted. Raises ForeignObject."""
        try:
            created = await self.client.create(resource, manifest, namespace=objects.namespace(manifest))
        except AlreadyExists:
            name, namespace = objects.name(manifest), objects.namespace(manifest)
            found = await self.find(resource, name, namespace=namespace, metadata_only=True)
            if found is None:
                # Gone between the two requests: the next look makes it anew.
                return
            self.check_ours(resource, found)
            created = found
        self.note(resource, created)

    async def ensure_unread(self, resource: Resource, manifest: Object) -> None:
        """Create it, once; for kinds that we may not read, under a name that has the plan's uid in it."""
        try:
            self.note(resource, await self.client.create(resource, manifest, namespace=objects.namespace(manifest)))
        except AlreadyExists:
            return

    async def patch(
        self, resource: Resource, name: str, patch: Patch, *, namespace: str = "", metadata_only: bool = False
    ) -> None:
        """Patch an object of someone else, in the fields that are ours to set."""
        patched = await self.client.patch(resource, name, patch, namespace=namespace, metadata_only=metadata_only)
        self.note(resource, patched)

    async def mark(self, resource: Resource, name: str, metadata: Object, *, namespace: str = "") -> None:
        """Set labels or annotations of a Node or Secret; one that has just left needs them no more."""
        try:
            patch = MergePatch({"metadata": metadata})
            await self.patch(resource, name, patch, namespace=namespace, metadata_only=True)
        except NotFound:
            log.info("gone, so not marked", kind=resource.kind, object=name)

    async def find(
        self, resource: Resource, name: str, *, namespace: str = "", metadata_only: bool = False
    ) -> Object | None:
        """Read one object that nobody watches; None where it, its kind or its namespace is absent."""
        try:
            return await self.client.get(resource, name, namespace=namespace, metadata_only=metadata_only)
        except NotFound:
            return None

    async def annotate(self, values: dict[str, str]) -> None:
        """Note something on the plan itself; only if nobody has changed it since we read it. Raises Conflict."""
        await self._write_plan(MergePatch({"metadata": {"annotations": values}}), subresource="")

    async def take_possession(self, finalizer: str) -> None:
        """Put the finalizer on the plan and take off notes that were copied with its manifest. Raises Conflict."""
        present = objects.annotations_of(self.raw)
        copied: dict[str, Any] = {key: None for key in MANAGER_ANNOTATIONS if key in present}
        others = [name for name in objects.finalizers(self.raw) if name != finalizer]
        metadata = {"finalizers": [*others, finalizer], **({"annotations": copied} if copied else {})}
        await self._write_plan(MergePatch({"metadata": metadata}), subresource="")

    async def set_finalizers(self, finalizers: list[str]) -> None:
        """Replace the plan's finalizers, on the same terms."""
        await self._write_plan(MergePatch({"metadata": {"finalizers": finalizers}}), subresource="")

    async def persist(self) -> bool:
        """Write what has changed of the status, and announce the phases that this records; whether anything had."""
        difference = self.status.difference()
        if not difference:
            return False
        reached = self.status.unwritten_phases()
        await self._write_plan(MergePatch({"status": difference}), subresource="status")
        _log_progress(reached, difference)
        self.events.phases(self.raw, reached)
        self.metrics.recorded(self.raw, reached)
        return True

    async def _write_plan(self, patch: MergePatch, *, subresource: str) -> None:
        answer = await self.client.patch(
            UPGRADE_PLANS, self.owner.name, patch.at(objects.resource_version(self.raw)), subresource=subresource
        )
        self.raw = answer
        self.plan = parse_plan(answer)
        # The patch was pinned to the version that this patch began with, so nobody else wrote a status in between.
        self.status.rebase(answer, keep=not subresource)
        self.note(UPGRADE_PLANS, answer)

    def note(self, resource: Resource, answer: Object) -> None:
        """Remember a write for the barrier at the end of the reconcile."""
        version = objects.resource_version(answer)
        self.written.append(Written(resource=resource, namespace=objects.namespace(answer), resource_version=version))

    def check_ours(self, resource: Resource, found: Object) -> None:
        """Raise ForeignObject where it has another owner, or none."""
        if objects.owner_uid(found) == self.owner.uid:
            return
        raise ForeignObject(
            f"{resource.kind} {objects.namespace(found)}/{objects.name(found)} belongs to {_owners(found)}, not to "
            f"UpgradePlan {self.owner.name} (uid {self.owner.uid}); it is left alone: delete or rename it, then the "
            "upgrade goes on"
        )


def parse_plan(raw: Object) -> ParsedPlan:
    """Parse spec and annotations; the status, which grows with the cluster, is left to `StatusPatch`."""
    return ParsedPlan(
        spec=UpgradePlanSpec.read(objects.spec(raw)), annotations=PlanAnnotations(objects.annotations_of(raw))
    )


def _owners(found: Object) -> str:
    references: list[dict[str, Any]] = objects.metadata(found).get("ownerReferences") or []
    if not references:
        return "nobody (it has no owner)"
    return ", ".join(f"{owner.get('kind')} {owner.get('name')} (uid {owner.get('uid')})" for owner in references)


def _log_progress(reached: list[str], difference: Object) -> None:
    for value in reached:
        log.info("phase reached", reached=value)
    for node, entry in (difference.get("nodeUpgradeStatuses") or {}).items():
        if entry and "state" in entry:
            log.info("node moved", node=node, state=entry["state"])
