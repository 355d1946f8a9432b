"""JSON, merge and strategic merge patches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hack.apiserver.patches import merge
from hack.apiserver.strategic import StrategyError, strategic_merge
from tests.support.definitions import WIDGETS, widget

if TYPE_CHECKING:
    from tests.support.wire import Wire

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        pytest.param({"a": 1}, {"b": 2}, {"a": 1, "b": 2}, id="add"),
        pytest.param({"a": 1, "b": 2}, {"a": None}, {"b": 2}, id="remove"),
        pytest.param({"a": 1}, {"gone": None}, {"a": 1}, id="remove what is not there"),
        pytest.param({"a": {"x": 1, "y": 2}}, {"a": {"x": 3}}, {"a": {"x": 3, "y": 2}}, id="deep"),
        pytest.param({"a": [1, 2]}, {"a": [3]}, {"a": [3]}, id="lists are replaced"),
        pytest.param({"a": 1}, {"a": {"x": None, "y": 1}}, {"a": {"y": 1}}, id="nulls never arrive"),
    ],
)
def test_a_merge_patch_follows_rfc_7386(target: Any, patch: Any, expected: Any) -> None:
    before = repr(target)
    assert merge(target, patch) == expected
    assert repr(target) == before


POD: dict[str, Any] = {
    "kind": "Pod",
    "metadata": {"finalizers": ["x/a"], "ownerReferences": [{"uid": "1", "name": "o"}], "labels": {"a": "1"}},
    "spec": {
        "containers": [
            {"name": "c", "image": "i:1", "env": [{"name": "A", "value": "1"}], "ports": [{"containerPort": 80}]},
            {"name": "d", "image": "j"},
        ],
        "volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}],
        "tolerations": [{"key": "k"}],
    },
    "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "x"}]},
}


def _at(obj: Any, path: str) -> Any:
    for part in path.split("."):
        obj = obj[int(part)] if part.isdigit() else obj.get(part)
    return obj


@pytest.mark.parametrize(
    ("patch", "path", "expected"),
    [
        pytest.param(
            {"spec": {"containers": [{"name": "c", "image": "i:2"}]}},
            "spec.containers",
            [POD["spec"]["containers"][0] | {"image": "i:2"}, {"name": "d", "image": "j"}],
            id="a container is found by its name",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "e", "image": "k"}]}},
            "spec.containers.0",
            {"name": "e", "image": "k"},
            id="a new one comes first",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "d", "$patch": "delete"}]}},
            "spec.containers",
            POD["spec"]["containers"][:1],
            id="a directive deletes an item",
        ),
        pytest.param(
            {"spec": {"containers": [{"$patch": "replace"}, {"name": "z"}]}},
            "spec.containers",
            [{"name": "z"}],
            id="a directive replaces a list",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "c", "env": [{"name": "B", "value": "2"}]}]}},
            "spec.containers.0.env",
            [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}],
            id="lists inside of items are merged too",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80, "name": "w"}]}]}},
            "spec.containers.0.ports",
            [{"containerPort": 80, "name": "w"}],
            id="ports of a container by number",
        ),
        pytest.param(
            {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
            "status.conditions",
            [{"type": "Ready", "status": "True", "reason": "x"}],
            id="conditions by type",
        ),
        pytest.param(
            {"spec": {"tolerations": [{"key": "l"}]}},
            "spec.tolerations",
            [{"key": "l"}],
            id="a list without a key is replaced",
        ),
        pytest.param(
            {"metadata": {"finalizers": ["x/b"]}}, "metadata.finalizers", ["x/b", "x/a"], id="finalizers are a set"
        ),
        pytest.param(
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/a"]}},
            "metadata.finalizers",
            [],
            id="a directive takes values from a set",
        ),
        pytest.param(
            {"metadata": {"ownerReferences": [{"uid": "1", "$patch": "delete"}]}},
            "metadata.ownerReferences",
            [],
            id="owners by uid",
        ),
        pytest.param({"metadata": {"labels": {"a": None}}}, "metadata.labels", {}, id="null removes"),
        pytest.param(
            {"metadata": {"labels": {"$patch": "replace", "b": "2"}}},
            "metadata.labels",
            {"b": "2"},
            id="a directive replaces a map",
        ),
        pytest.param({"metadata": {"labels": {"$patch": "delete"}}}, "metadata.labels", None, id="or deletes it"),
        pytest.param(
            {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]}},
            "spec.volumes.0",
            {"name": "v", "hostPath": {"path": "/"}},
            id="a directive keeps only some members",
        ),
        pytest.param(
            {
                "spec": {
                    "$setElementOrder/containers": [{"name": "d"}, {"name": "e"}, {"name": "c"}],
                    "containers": [{"name": "e"}],
                }
            },
            "spec.containers",
            [{"name": "d", "image": "j"}, {"name": "e"}, POD["spec"]["containers"][0]],
            id="a directive orders the list",
        ),
    ],
)
def test_a_strategic_merge_patch(patch: Any, path: str, expected: Any) -> None:
    before = repr(POD)
    assert _at(strategic_merge(POD, patch, resource="pods"), path) == expected
    assert repr(POD) == before


@pytest.mark.parametrize(
    ("kind", "patch", "path", "expected"),
    [
        pytest.param(
            "services",
            {"spec": {"ports": [{"port": 80, "name": "w"}]}},
            "spec.ports",
            [{"port": 80, "targetPort": 1, "name": "w"}],
            id="ports of a Service by port",
        ),
        pytest.param(
            "endpointslices.discovery.k8s.io",
            {"ports": [{"port": 81}]},
            "ports",
            [{"port": 81}],
            id="of a slice replaced",
        ),
    ],
)
def test_the_same_field_merges_by_its_kind(kind: str, patch: Any, path: str, expected: Any) -> None:
    ports = [{"port": 80, "targetPort": 1}]
    target = {"spec": {"ports": ports}, "ports": ports}
    assert _at(strategic_merge(target, patch, resource=kind), path) == expected


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param({"spec": {"containers": [{"image": "i"}]}}, id="item without its key"),
        pytest.param({"spec": {"$patch": "mix"}}, id="unknown directive"),
    ],
)
def test_a_wrong_strategic_merge_patch_is_refused(patch: Any) -> None:
    with pytest.raises(StrategyError):
        strategic_merge(POD, patch, resource="pods")


@pytest.mark.parametrize(
    ("path", "kind", "patch", "status"),
    [
        pytest.param(f"{WIDGETS}/a", "json", [{"op": "test", "path": "/spec/size", "value": 1}], 200, id="test holds"),
        pytest.param(f"{WIDGETS}/a", "json", [{"op": "test", "path": "/spec/size", "value": 2}], 422, id="test fails"),
        pytest.param(f"{WIDGETS}/a", "json", [{"op": "remove", "path": "/spec/gone"}], 422, id="nothing to remove"),
        pytest.param(f"{WIDGETS}/a", "json", [{"op": "add", "path": "spec"}], 422, id="wrong pointer"),
        pytest.param(f"{WIDGETS}/a", "json", {"spec": {}}, 400, id="no list of operations"),
        pytest.param(f"{WIDGETS}/a", "merge", [1], 400, id="merge patch that is no object"),
        pytest.param(f"{WIDGETS}/a", "strategic", {"spec": {}}, 415, id="strategic merge of a custom kind"),
        pytest.param(f"{WIDGETS}/a", "apply", {"spec": {}}, 415, id="server-side apply"),
        pytest.param(f"{MAPS}/a", "strategic", {"data": {"x": "1"}}, 200, id="strategic merge of a built-in kind"),
        pytest.param(f"{MAPS}/a", "apply", {"data": {}}, 415, id="server-side apply of a built-in kind"),
    ],
)
async def test_a_patch_is_applied_or_refused(wire: Wire, path: str, kind: str, patch: Any, status: int) -> None:
    await wire.post(WIDGETS, widget("a", size=1))
    await wire.post(MAPS, {"metadata": {"name": "a"}})
    answer = await wire.patch(path, patch, kind=kind)
    assert answer.status == status, answer.body
