"""Label and field selectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hack.apiserver.field_selector import parse_fields
from hack.apiserver.label_selector import parse_labels
from hack.apiserver.resources import ResourceTable
from hack.apiserver.selectors import Selector
from hack.apiserver.status import StatusError

if TYPE_CHECKING:
    from tests.support.wire import Wire

TABLE = ResourceTable.builtin()
LABELS = {"app": "web", "tier": "front", "n": "5", "example.io/x": ""}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param("", True, id="empty takes all"),
        pytest.param("app=web", True, id="equal"),
        pytest.param("app==web", True, id="equal in Go"),
        pytest.param("app = web", True, id="blanks"),
        pytest.param("app=db", False, id="not equal"),
        pytest.param("gone=web", False, id="equal needs the key"),
        pytest.param("app!=db", True, id="other value"),
        pytest.param("app!=web", False, id="the same value"),
        pytest.param("gone!=web", True, id="unequal takes absent keys"),
        pytest.param("app in (db, web)", True, id="in"),
        pytest.param("app in (db)", False, id="not in the set"),
        pytest.param("app notin (db)", True, id="notin"),
        pytest.param("gone notin (db)", True, id="notin takes absent keys"),
        pytest.param("app", True, id="exists"),
        pytest.param("gone", False, id="does not exist"),
        pytest.param("!gone", True, id="absent"),
        pytest.param("!app", False, id="not absent"),
        pytest.param("n>4", True, id="greater"),
        pytest.param("n<5", False, id="less"),
        pytest.param("app>1", False, id="greater needs a number"),
        pytest.param("app in (web,db),tier=front,!gone", True, id="all terms, commas in parentheses"),
        pytest.param("app=web,tier=back", False, id="one term fails"),
        pytest.param("example.io/x=", True, id="empty value"),
        pytest.param("example.io/x in ()", True, id="empty value in a set"),
    ],
)
def test_a_label_selector_matches(selector: str, expected: bool) -> None:  # noqa: FBT001
    chosen = Selector(labels=parse_labels(selector))
    assert chosen.matches({"metadata": {"name": "x", "labels": LABELS}}) is expected


@pytest.mark.parametrize("selector", ["=x", "a=(", "a in b", "n>x", "a b", ",", "a,,b", "!a=b"])
def test_a_wrong_label_selector_is_a_bad_request(selector: str) -> None:
    with pytest.raises(StatusError) as refused:
        parse_labels(selector)
    assert refused.value.code == 400


POD: dict[str, Any] = {
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"nodeName": "n"},
    "status": {"phase": "Running"},
}
EVENT: dict[str, Any] = {
    "metadata": {"name": "e", "namespace": "default"},
    "involvedObject": {"kind": "Node", "name": "n"},
    "source": {"component": "kubelet"},
}


@pytest.mark.parametrize(
    ("plural", "obj", "selector", "expected"),
    [
        pytest.param("pods", POD, "metadata.name=p", True, id="name"),
        pytest.param("pods", POD, "metadata.namespace!=default", False, id="namespace"),
        pytest.param("pods", POD, "spec.nodeName=n,status.phase==Running", True, id="fields of Pods"),
        pytest.param("pods", POD, "status.phase!=Running", False, id="unequal"),
        pytest.param("pods", POD, "status.podIP=", True, id="absent is empty"),
        pytest.param("nodes", {"metadata": {"name": "n"}}, "spec.unschedulable=false", True, id="absent is false"),
        pytest.param("secrets", {"metadata": {"name": "s"}, "type": "Opaque"}, "type=Opaque", True, id="type"),
        pytest.param("events", EVENT, "involvedObject.namespace=,involvedObject.kind=Node", True, id="events"),
        pytest.param("events", EVENT, "source=kubelet", True, id="source is its component"),
        pytest.param("events", EVENT, r"involvedObject.name=a\,b", False, id="escaped comma"),
    ],
)
def test_a_field_selector_matches(
    plural: str,
    obj: dict[str, Any],
    selector: str,
    expected: bool,  # noqa: FBT001
) -> None:
    row = TABLE.find("", "v1", plural)
    assert row is not None
    assert Selector(fields=parse_fields(selector, row)).matches(obj) is expected


@pytest.mark.parametrize("selector", ["spec.x=1", "nonsense", "status.phase=x"])
def test_a_field_that_is_not_offered_is_a_bad_request(selector: str) -> None:
    row = TABLE.find("", "v1", "configmaps")
    assert row is not None
    with pytest.raises(StatusError) as refused:
        parse_fields(selector, row)
    assert refused.value.code == 400


async def test_a_list_follows_both_selectors(wire: Wire) -> None:
    for name, app in (("a", "web"), ("b", "web"), ("c", "db")):
        body = {"metadata": {"name": name, "labels": {"app": app}}}
        await wire.post("/api/v1/namespaces/default/configmaps", body)
    answer = await wire.get("/api/v1/configmaps", labelSelector="app=web", fieldSelector="metadata.name!=a")
    assert answer.names == ["b"]
