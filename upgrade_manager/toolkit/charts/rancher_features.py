"""The features of Rancher's chart: keys that the new Rancher does not know, and the check that it accepts the others.

rancher_values.py changes the value, and the command cluster_upgrade checks the result after Rancher has started.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from upgrade_manager.facts.rancher_features import MULTI_CLUSTER, unmet
from upgrade_manager.kube.resources import RANCHER_FEATURES

if TYPE_CHECKING:
    from collections.abc import Collection

    from upgrade_manager.toolkit.run.context import ToolkitContext

_FEATURES = "features"


def without_features(values: dict[str, Any], dropped: Collection[str]) -> dict[str, Any]:
    """Return the values without these keys of `features`, a text such as `a=true,b=false`; all others stay."""
    text = values.get(_FEATURES)
    if not isinstance(text, str):
        return values
    parts = text.split(",")
    kept = [part for part in parts if part.partition("=")[0].strip() not in dropped]
    return values if kept == parts else {**values, _FEATURES: ",".join(kept)}


def with_feature(values: dict[str, Any], key: str, value: str) -> dict[str, Any]:
    """Return the values with this key of `features`; a value that it has already stays."""
    text = values.get(_FEATURES) or ""
    if not isinstance(text, str) or any(part.partition("=")[0].strip() == key for part in text.split(",")):
        return values
    return {**values, _FEATURES: ",".join((*filter(None, [text]), f"{key}={value}"))}


async def features_not_accepted(context: ToolkitContext) -> str:
    """Return why the new Rancher may be a multi-cluster manager."""
    return unmet(await context.client.find(RANCHER_FEATURES, MULTI_CLUSTER))
