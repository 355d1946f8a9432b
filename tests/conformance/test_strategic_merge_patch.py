"""Strategic merge patches of built-in kinds."""
# ruff: noqa: E501  # keep server messages on one line

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.conformance_rows import Row, answered, play, post, refused, strategic
from tests.support.shapes import WIDGETS, widget

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers

DEPLOYMENTS = "/apis/apps/v1/namespaces/$ns/deployments"
NODES = "/api/v1/nodes"

_TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {
        "containers": [
            {
                "name": "one",
                "image": "i:1",
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                "args": ["x", "y"],
            },
            {"name": "two", "image": "i:2"},
        ],
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "nodeSelector": {"n": "1"},
        "volumes": [{"name": "v", "emptyDir": {}}],
    },
}
DEPLOYMENT = (
    post(
        DEPLOYMENTS,
        {
            "metadata": {"name": "one", "labels": {"l": "m"}},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE},
        },
    ),
)


def _pod_spec(title: str, patch: object, *look: str, then: object) -> Row:
    """Patch a Deployment's Pod template."""
    paths = tuple(f"spec.template.spec.{path}" for path in look)
    return Row(
        title=title,
        given=DEPLOYMENT,
        when=strategic(f"{DEPLOYMENTS}/one", {"spec": {"template": {"spec": patch}}}),
        fields=paths,
        then=then,
    )


ROWS = [
    _pod_spec(
        "containers merge by name",
        {"containers": [{"name": "two", "image": "i:3"}]},
        "containers.0.image",
        "containers.1.image",
        then=answered(
            200, **{"spec.template.spec.containers.0.image": "i:1", "spec.template.spec.containers.1.image": "i:3"}
        ),
    ),
    _pod_spec(
        "map is merged",
        {"nodeSelector": {"m": "2"}},
        "nodeSelector",
        then=answered(200, **{"spec.template.spec.nodeSelector": {"m": "2", "n": "1"}}),
    ),
    Row(
        title="conditions merge by type",
        given=(
            post(
                NODES,
                {
                    "metadata": {"name": "$word"},
                    "status": {"conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "True"}]},
                },
            ),
        ),
        when=strategic(f"{NODES}/$word/status", {"status": {"conditions": [{"type": "B", "status": "False"}]}}),
        fields=("status.conditions",),
        then=answered(
            200,
            **{
                "status.conditions": [
                    {"type": "A", "status": "True", "lastHeartbeatTime": None, "lastTransitionTime": None},
                    {"type": "B", "status": "False", "lastHeartbeatTime": None, "lastTransitionTime": None},
                ]
            },
        ),
    ),
    Row(
        title="taints of a Node are replaced",
        given=(
            post(
                NODES, {"metadata": {"name": "$word"}, "spec": {"taints": [{"key": "a.io/a", "effect": "NoSchedule"}]}}
            ),
        ),
        when=strategic(f"{NODES}/$word", {"spec": {"taints": [{"key": "a.io/b", "effect": "NoExecute"}]}}),
        fields=("spec.taints.0.key", "spec.taints.1.key"),
        then=answered(200, **{"spec.taints.0.key": "a.io/b", "spec.taints.1.key": "absent"}),
    ),
    Row(
        title="custom kind refuses strategic merge patches",
        given=(post(WIDGETS, widget()),),
        when=strategic(f"{WIDGETS}/one", {}),
        then=refused(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            None,
        ),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_strategic_merge_patch(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
