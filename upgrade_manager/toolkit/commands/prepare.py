"""`node prepare`: loads the release's images onto this node, so that its upgrade needs no registry."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.toolkit.commands.version_guard import check
from upgrade_manager.toolkit.images.image_import import images_missing, import_images
from upgrade_manager.toolkit.images.image_record import ImageRecord
from upgrade_manager.toolkit.images.kept_archives import IMPORTED, archives_missing, keep_archives
from upgrade_manager.toolkit.iso.partial_file import PartialFile
from upgrade_manager.toolkit.iso.repository_wait import WAIT_FOR_NODE_RELEASE
from upgrade_manager.toolkit.run.steps import Step

if TYPE_CHECKING:
    from upgrade_manager.toolkit.run.context import ToolkitContext


async def leftovers(context: ToolkitContext) -> str:
    """Return the earlier plan's downloads."""
    record = ImageRecord.load(context.tree)
    return "" if record.plan == await _plan_uid(context) else f"{IMPORTED} may be of an earlier plan"


async def remove_leftovers(context: ToolkitContext) -> None:
    """Remove downloads of an earlier plan, whose ISO may have other files; archives that are complete stay."""
    uid, record = await _plan_uid(context), ImageRecord.load(context.tree)
    context.tree.remove(IMPORTED)
    for target in record.found:
        PartialFile(context.tree.path(target)).discard()
    replace(record, plan=uid).save(context.tree)


async def imported_archives(context: ToolkitContext) -> str:
    """Return the folder of archives that nothing reads again."""
    return IMPORTED if context.tree.exists(IMPORTED) else ""


async def remove_imported(context: ToolkitContext) -> None:
    """Remove the folder of archives that nothing reads again."""
    context.tree.remove(IMPORTED)


async def _plan_uid(context: ToolkitContext) -> str:
    return objects.uid(await context.client.get(UPGRADE_PLANS, context.plan))


STEPS = (
    WAIT_FOR_NODE_RELEASE,
    Step(name="check-version", timeout=300, act=check),
    Step(name="remove-leftovers", timeout=300, missing=leftovers, act=remove_leftovers),
    Step(name="import-images", timeout=4 * 3600, missing=images_missing, act=import_images),
    Step(name="keep-archives", timeout=2 * 3600, missing=archives_missing, act=keep_archives),
    Step(name="remove-imported-archives", timeout=300, missing=imported_archives, act=remove_imported),
)
