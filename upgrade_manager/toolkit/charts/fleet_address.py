"""The API server's address and authority by which Fleet's controller imports the cluster.

The command cluster_upgrade records them before Rancher is upgraded, whose new chart of Fleet may drop them; without an
address Fleet cannot deploy its agent. The record outlasts the command and its plan: it is an annotation of Harvester's
ManagedChart.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from upgrade_manager.api.keys import PREFIX
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import CONFIG_MAPS
from upgrade_manager.toolkit.charts.managed_charts import HARVESTER, patch_chart, read_chart
from upgrade_manager.toolkit.charts.rancher import rancher_missing
from upgrade_manager.toolkit.run.errors import StepFailed

if TYPE_CHECKING:
    from typing import Any

    from upgrade_manager.kube.objects import Object
    from upgrade_manager.toolkit.run.context import ToolkitContext

FLEET_SYSTEM = "cattle-fleet-system"
_CONFIG_MAP, _CONFIG = "fleet-controller", "config"
_NAME = f"ConfigMap {FLEET_SYSTEM}/{_CONFIG_MAP}"
#: The values as JSON, with the name of the plan that recorded them.
ANNOTATION_ADDRESS = f"{PREFIX}/original-fleet-address"
_KEYS = ("apiServerURL", "apiServerCA")
_PLAN = "plan"


async def address_not_recorded(context: ToolkitContext) -> str:
    """Return that the values are not recorded. An upgraded Rancher may have changed them: then it is too late."""
    recorded = await _recorded(context)
    if recorded is not None and recorded.get(_PLAN) == context.plan:
        return ""
    if not await rancher_missing(context) or not _address(await _config(context)):
        return ""
    return f"{' and '.join(_KEYS)} of {_NAME} are not recorded"


async def record_address(context: ToolkitContext) -> None:
    """Record the values. A record of another plan, which failed before Rancher's upgrade, is replaced."""
    chart = await read_chart(context.client, HARVESTER)
    record = json.dumps({_PLAN: context.plan, **_address(await _config(context))})
    await patch_chart(context.client, chart, spec={}, annotations={ANNOTATION_ADDRESS: record})


async def address_changed(context: ToolkitContext) -> str:
    """Return the values that differ from the record; empty without a record."""
    names = sorted(await _changed(context, await _config(context)))
    return f"{_NAME} has another {' and '.join(names)} than before Rancher's upgrade" if names else ""


async def restore_address(context: ToolkitContext) -> None:
    """Restore the values; all others stay. Raises Conflict if another client writes the ConfigMap meanwhile."""
    found = await context.client.find(CONFIG_MAPS, _CONFIG_MAP, namespace=FLEET_SYSTEM)
    config = _parsed(found)
    changed = await _changed(context, config)
    if found is not None and changed:
        text = json.dumps({**config, **changed}, indent=2)
        patch = MergePatch({"data": {_CONFIG: text}}).at(objects.resource_version(found))
        await context.client.patch(CONFIG_MAPS, _CONFIG_MAP, patch, namespace=FLEET_SYSTEM)


async def record_left(context: ToolkitContext) -> str:
    """Return that the record still exists."""
    return f"{ANNOTATION_ADDRESS} is still recorded" if await _recorded(context) is not None else ""


async def remove_record(context: ToolkitContext) -> None:
    """Remove the record, once Fleet's agent runs with the values."""
    chart = await read_chart(context.client, HARVESTER)
    await patch_chart(context.client, chart, spec={}, annotations={ANNOTATION_ADDRESS: None})


async def _changed(context: ToolkitContext, config: Object) -> dict[str, str]:
    """Return the recorded values that differ, by key."""
    recorded = _address(await _recorded(context) or {})
    return {key: value for key, value in recorded.items() if config.get(key) != value}


async def _recorded(context: ToolkitContext) -> Object | None:
    """Return the record; None without one, or for one that is not readable."""
    text = objects.annotations_of(await read_chart(context.client, HARVESTER)).get(ANNOTATION_ADDRESS)
    try:
        found: Any = json.loads(text) if text is not None else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


async def _config(context: ToolkitContext) -> Object:
    return _parsed(await context.client.find(CONFIG_MAPS, _CONFIG_MAP, namespace=FLEET_SYSTEM))


def _parsed(config_map: Object | None) -> Object:
    """Return the configuration; empty without the ConfigMap. Raises StepFailed for another text."""
    try:
        found: Any = json.loads(objects.text(config_map, "data", _CONFIG) or "{}")
    except ValueError as error:
        raise StepFailed(f"{_NAME}: {_CONFIG} is not JSON, so that Fleet cannot read it either") from error
    return found if isinstance(found, dict) else {}


def _address(config: Object) -> dict[str, str]:
    return {key: config[key] for key in _KEYS if isinstance(config.get(key), str)}
