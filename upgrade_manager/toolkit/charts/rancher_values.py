"""The values of Rancher's chart that the rows of release/migrations change.

rancher.py gives the result to helm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from upgrade_manager.api.keys import WITNESS_LABEL
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import NODES
from upgrade_manager.release.migrations.generic import THREE_REPLICAS, TWO_REPLICAS, WITNESS_REPLICAS
from upgrade_manager.release.migrations.v1_7_to_v1_8 import DROPPED_FEATURES, FEATURES
from upgrade_manager.release.migrations.v1_8_to_v1_9 import ADDED_FEATURE, TOKEN_ROTATION
from upgrade_manager.toolkit.charts.rancher_features import with_feature, without_features

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from upgrade_manager.release.migrations.row import Row
    from upgrade_manager.toolkit.run.context import ToolkitContext

_REPLICAS = "replicas"
#: Nodes of a cluster whose witness leaves Rancher two.
_NODES = 3
Values: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueChange:
    """A row that changes values of the chart."""

    row: Row
    #: Returns the changed values, and equal ones once the row is done.
    change: Callable[[ToolkitContext, Values], Awaitable[Values]]


async def with_rows(context: ToolkitContext, values: Values) -> Values:
    """Return the values with the changes of this upgrade's rows. Raises KubeError and BadArchive."""
    for one in CHANGES:
        if await context.migration.has(one.row):
            values = await one.change(context, values)
    return values


async def _without_dropped_features(_: ToolkitContext, values: Values) -> Values:
    return without_features(values, DROPPED_FEATURES)


async def _with_token_rotation_off(_: ToolkitContext, values: Values) -> Values:
    return with_feature(values, *ADDED_FEATURE)


async def _with_replicas_for_a_witness(context: ToolkitContext, values: Values) -> Values:
    if values.get(_REPLICAS) != THREE_REPLICAS:
        return values
    nodes = (await context.client.list(NODES, metadata_only=True)).items
    has_witness = any(objects.labels(node).get(WITNESS_LABEL) == "true" for node in nodes)
    return {**values, _REPLICAS: TWO_REPLICAS} if has_witness and len(nodes) == _NODES else values


CHANGES = (
    ValueChange(row=FEATURES, change=_without_dropped_features),
    ValueChange(row=TOKEN_ROTATION, change=_with_token_rotation_off),
    ValueChange(row=WITNESS_REPLICAS, change=_with_replicas_for_a_witness),
)
