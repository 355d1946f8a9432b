"""The CustomResourceDefinition of CDI's own kind, which Harvester's chart has and Helm never upgrades.

The command cluster_upgrade applies it before Harvester's chart is upgraded.
"""

from __future__ import annotations

import asyncio
import io
import tarfile
from typing import TYPE_CHECKING, Any

import yaml

from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import AlreadyExists, Conflict
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import CUSTOM_RESOURCE_DEFINITIONS
from upgrade_manager.toolkit.charts.chart_files import LOADER
from upgrade_manager.toolkit.charts.managed_charts import HARVESTER
from upgrade_manager.toolkit.run.errors import BadArchive

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.toolkit.run.context import ToolkitContext

_NAME = "cdis.cdi.kubevirt.io"
#: Helm's folder for definitions.
_FOLDER = "/crds/"
#: Bytes of one file; CDI's definition has 350 kB.
_MAX_FILE = 8 * 1024 * 1024


async def definition_outdated(context: ToolkitContext) -> str:
    """Return that the definition is not the release's; empty for a release whose chart has none."""
    wanted = await _wanted(context)
    if wanted is None:
        return ""
    found = await context.client.find(CUSTOM_RESOURCE_DEFINITIONS, _NAME)
    if found is not None and has(found, wanted):
        return ""
    return f"CustomResourceDefinition {_NAME} {'differs from the release' if found is not None else 'does not exist'}"


async def apply_definition(context: ToolkitContext) -> None:
    """Set what the release has, and keep all else. Raises Conflict if another client writes it meanwhile."""
    wanted = await _wanted(context)
    if wanted is None:
        return
    found = await context.client.find(CUSTOM_RESOURCE_DEFINITIONS, _NAME)
    if found is not None:
        patch = MergePatch(wanted).at(objects.resource_version(found))
        await context.client.patch(CUSTOM_RESOURCE_DEFINITIONS, _NAME, patch)
        return
    body = {**wanted, "metadata": {**wanted["metadata"], "name": _NAME}}
    try:
        await context.client.create(CUSTOM_RESOURCE_DEFINITIONS, CUSTOM_RESOURCE_DEFINITIONS.with_type_meta(body))
    except AlreadyExists as error:
        raise Conflict(str(error)) from error


def has(found: Any, wanted: Any) -> bool:
    """Return True if `found` has all that is wanted. The API server leaves out empty values, and adds defaults."""
    if isinstance(wanted, dict):
        given = found if isinstance(found, dict) else {}
        return all(has(given.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(found, list):
        return len(found) == len(wanted) and all(map(has, found, wanted))
    return bool(found == wanted) or (not wanted and not found)


async def _wanted(context: ToolkitContext) -> Object | None:
    archive = await context.charts.archive(HARVESTER)
    return await asyncio.to_thread(definition_in, archive)


def definition_in(archive: bytes) -> Object | None:
    """Return labels, annotations and spec of the definition in a chart; None without it. Raises BadArchive."""
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as content:
            for entry in content:
                if not entry.isfile() or _FOLDER not in entry.name or entry.size > _MAX_FILE:
                    continue
                file = content.extractfile(entry)
                found = _named(file.read()) if file is not None else None
                if found is not None:
                    return found
    except (tarfile.TarError, yaml.YAMLError, EOFError, OSError, ValueError, RecursionError) as error:
        raise BadArchive(f"Harvester's chart is not a chart: {error}") from error
    return None


def _named(body: bytes) -> Object | None:
    if _NAME.encode() not in body:
        return None
    for document in yaml.load_all(body, Loader=LOADER):
        if objects.text(document, "metadata", "name") == _NAME and isinstance(document.get("spec"), dict):
            metadata = {key: dict(objects.mapping(document, "metadata", key)) for key in ("annotations", "labels")}
            return {"metadata": {key: value for key, value in metadata.items() if value}, "spec": document["spec"]}
    return None
