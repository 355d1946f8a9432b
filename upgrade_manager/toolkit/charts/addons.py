"""Harvester's add-ons, also disabled ones: the release's charts and images; users' values stay.

The command cluster_upgrade runs these steps; Harvester's controller deploys the add-ons by helm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from upgrade_manager.facts import addons
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import AlreadyExists, Conflict
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import ADDONS
from upgrade_manager.release.image_lists import repository_name
from upgrade_manager.release.migrations import addons as table
from upgrade_manager.toolkit.charts.addon_values import image_tag, with_event_router, with_image_tag
from upgrade_manager.toolkit.charts.helm import Release
from upgrade_manager.toolkit.charts.helm_releases import release_missing
from upgrade_manager.toolkit.run.errors import StepFailed
from upgrade_manager.toolkit.run.plan_events import WARNING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.release.migrations.addons import KnownAddon
    from upgrade_manager.toolkit.run.context import ToolkitContext

_DEPLOYED = "AddonDeploySuccessful"
#: The source of events.
_SOURCE = "cluster-upgrade"
_REPOSITORY = "http://harvester-cluster-repo.cattle-system.svc/charts"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """An add-on, and what the release changes of it."""

    name: str
    namespace: str
    #: None for an add-on that does not exist.
    found: Object | None
    version: str
    content: str
    #: The object to create where the add-on does not exist.
    manifest: Object | None = None

    @property
    def about(self) -> str:
        """The add-on in messages."""
        return f"Addon {self.namespace}/{self.name}"

    @property
    def changes(self) -> Object:
        """The fields of spec that differ."""
        wanted = {"version": self.version, "valuesContent": self.content}
        spec = objects.spec(self.found or {})
        return {key: value for key, value in wanted.items() if (spec.get(key) or "") != value}


async def addons_outdated(context: ToolkitContext) -> str:
    """Return the first add-on without the release's chart or image."""
    async for wanted in _wanted(context):
        outdated = _outdated(wanted)
        if outdated:
            return outdated
    return ""


async def addons_not_deployed(context: ToolkitContext) -> str:
    """Return the enabled add-ons that are not deployed with the release's chart."""
    enabled = [one async for one in _wanted(context) if objects.is_true(one.found or {}, "spec", "enabled")]
    return "; ".join(filter(None, [await _not_deployed(context, wanted) for wanted in enabled]))


async def report_not_deployed(context: ToolkitContext, cause: str) -> None:
    """Record the event of an add-on for which the upgrade waits no longer."""
    text = f"{cause}. The upgrade goes on; the add-on needs repair"
    await context.events.record(_SOURCE, type_=WARNING, reason="AddonNotDeployed", message=text)


async def upgrade_addons(context: ToolkitContext) -> None:
    """Set chart versions and images, because the repository and the nodes keep only those of the release."""
    async for wanted in _wanted(context):
        if wanted.found is not None:
            if wanted.changes:
                patch = MergePatch({"spec": wanted.changes}).at(objects.resource_version(wanted.found))
                await context.client.patch(ADDONS, wanted.name, patch, namespace=wanted.namespace)
        elif wanted.manifest is not None:
            try:
                await context.client.create(ADDONS, wanted.manifest)
            except AlreadyExists as error:
                raise Conflict(str(error)) from error


def _outdated(wanted: _Wanted) -> str:
    if wanted.found is None:
        return f"{wanted.about} does not exist" if wanted.manifest is not None else ""
    spec = objects.spec(wanted.found)
    if spec.get("version") != wanted.version:
        return f"{wanted.about} has chart version {spec.get('version')} instead of {wanted.version}"
    return f"{wanted.about} has the previous release's image" if wanted.changes else ""


async def _not_deployed(context: ToolkitContext, wanted: _Wanted) -> str:
    found = wanted.found or {}
    if objects.text(found, "status", "status") != _DEPLOYED:
        return f"{wanted.about} {wanted.version} is {addons.state(found)}"
    # Right after the change, the add-on still has the status of the previous chart.
    release = Release(name=wanted.name, namespace=wanted.namespace)
    return await release_missing(context, release, chart=f"{objects.text(found, 'spec', 'chart')}-{wanted.version}")


async def _wanted(context: ToolkitContext) -> AsyncIterator[_Wanted]:
    """Yield the add-ons that exist, and those that have to be created."""
    components = await context.release.components()
    for name, namespace, version in (
        ("rancher-monitoring", "cattle-monitoring-system", components.monitoring_chart),
        ("rancher-logging", "cattle-logging-system", components.logging_chart),
    ):
        found = await context.client.find(ADDONS, name, namespace=namespace)
        if found is not None:
            content = with_event_router(_content(found), components.event_router)
            yield _Wanted(name=name, namespace=namespace, found=found, version=version, content=content)
    for known in table.ADDONS:
        found = await context.client.find(ADDONS, known.name, namespace=known.namespace)
        if await _is_left_out(context, known, found):
            continue
        if found is None:
            yield await _created(context, known)
        else:
            yield await _upgraded(context, known, found)


async def _is_left_out(context: ToolkitContext, known: KnownAddon, found: Object | None) -> bool:
    """Return True for an add-on that stays as it is: with a user's chart, or not of the release and not enabled."""
    if found is not None and objects.spec(found).get("chart") != known.chart:
        return True
    if found is None and known.values is None:
        return True
    is_listed = known.name == table.NVIDIA or not known.image or bool(await _listed_tag(context, known.image))
    is_of_release = is_listed and await context.charts.has(known.chart)
    return not is_of_release and not objects.is_true(found, "spec", "enabled")


async def _upgraded(context: ToolkitContext, known: KnownAddon, found: Object) -> _Wanted:
    """Return an add-on with the index's chart, and with the tag of its image, if its values have one."""
    version, content = await context.charts.version(known.chart), _content(found)
    present = image_tag(content) if known.image else None
    if present is not None and present.repository in {"", known.image}:
        tag = await _tag(context, known, present=present.value)
        try:
            content = with_image_tag(content, tag)
        except StepFailed as error:
            raise StepFailed(f"{addons.named(found)}: {error}") from error
    return _Wanted(name=known.name, namespace=known.namespace, found=found, version=version, content=content)


async def _created(context: ToolkitContext, known: KnownAddon) -> _Wanted:
    """Return an add-on that does not exist, disabled."""
    version, tag = await context.charts.version(known.chart), await _tag(context, known, present="")
    content = (f"image:\n  tag: {tag}\n" if tag else "") + (known.values or "")
    labels = {"labels": known.labels} if known.labels else {}
    spec = {
        "enabled": False,
        "repo": _REPOSITORY,
        "chart": known.chart,
        "version": version,
        "valuesContent": content,
    }
    metadata = {"name": known.name, "namespace": known.namespace, **labels}
    manifest = ADDONS.with_type_meta({"metadata": metadata, "spec": spec})
    return _Wanted(
        name=known.name, namespace=known.namespace, found=None, version=version, content=content, manifest=manifest
    )


async def _tag(context: ToolkitContext, known: KnownAddon, *, present: str) -> str:
    """Return the image's tag in the release, or the present one of a user's image of NVIDIA's toolkit."""
    if known.name != table.NVIDIA:
        tag = await _listed_tag(context, known.image)
        if not tag:
            raise StepFailed(f"no image list of the ISO names {known.image}; disable the Addon {known.name}")
        return tag
    tag = table.nvidia_tag((await context.release.components()).harvester)
    return tag if not present or table.is_older_nvidia(present, than=tag) else present


async def _listed_tag(context: ToolkitContext, repository: str) -> str:
    """Return the tag that the ISO's lists name; empty if none names the image."""
    bundle = await context.release.bundle()
    for archive in (*bundle.common, *bundle.rke2, *bundle.agent):
        for reference in await context.release.references(archive):
            if repository_name(reference) == repository:
                return reference.rpartition("/")[2].partition(":")[2]
    return ""


def _content(addon: Object) -> str:
    return objects.spec(addon).get("valuesContent") or ""
