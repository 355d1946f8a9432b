from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.facts import update_methods as facts

POINTER = "/spec/workloadUpdateStrategy/workloadUpdateMethods"
OWN = {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "name": "kubevirt", "jsonPointers": [POINTER]}
MORE = {**OWN, "jsonPointers": ["/spec/other", POINTER]}
REST = {**OWN, "jsonPointers": ["/spec/other"]}
OTHER = {"apiVersion": "v1", "kind": "Service", "name": "x", "jsonPointers": [POINTER]}


def values(methods: Any = None, **spec: Any) -> dict[str, Any]:
    strategy = {} if methods is None else {"workloadUpdateStrategy": {"workloadUpdateMethods": methods}}
    return {"kubevirt": {"spec": {**strategy, **spec}}, "other": 1}


def chart(found: Any) -> dict[str, Any]:
    return {"spec": {"values": found}}


@pytest.mark.parametrize(
    "before",
    [
        pytest.param({"other": 1}, id="no-values"),
        pytest.param(values(monitorAccount="operator"), id="no-methods"),
        pytest.param(values(["LiveMigrate"]), id="methods"),
        pytest.param(values(["Evict"], monitorAccount="operator"), id="methods-among-others"),
    ],
)
def test_methods_are_emptied_and_restored(before: dict[str, Any]) -> None:
    methods = facts.of_chart(chart(before))
    emptied = facts.with_methods(before, [])
    assert facts.of_chart(chart(emptied)) == []
    assert facts.with_methods(emptied, methods) == before


@pytest.mark.parametrize("odd", [None, "text", ["list"], {"spec": None}])
def test_values_of_another_shape_have_no_methods(odd: Any) -> None:
    assert facts.of_chart(chart({"kubevirt": odd})) is None
    assert facts.of_chart(chart(facts.with_methods({"kubevirt": odd}, []))) == []


@pytest.mark.parametrize(
    ("entries", "after"),
    [
        ([], [OWN]),
        ([OWN], [OWN]),
        ([MORE], [MORE]),
        ([OTHER], [OTHER, OWN]),
        (["text", None], ["text", None, OWN]),
    ],
)
def test_exception_is_added_once(entries: list[Any], after: list[Any]) -> None:
    assert facts.with_pointer(entries) == after


@pytest.mark.parametrize(
    ("entries", "after"),
    [([], []), ([OWN], []), ([MORE], [REST]), ([OTHER, OWN], [OTHER]), (["text", None], ["text", None])],
)
def test_only_the_exception_is_removed(entries: list[Any], after: list[Any]) -> None:
    assert facts.without_pointer(entries) == after


def managed(manager: str) -> dict[str, Any]:
    """Return an object whose list that manager has written."""
    owned: dict[str, Any] = {"f:spec": {"f:workloadUpdateStrategy": {"f:workloadUpdateMethods": {}}}}
    return {"metadata": {"managedFields": [{"manager": manager, "operation": "Update", "fieldsV1": owned}]}}


@pytest.mark.parametrize(
    ("kubevirt", "writer"),
    [
        (managed("kubectl-patch"), "kubectl-patch"),
        (managed("manager"), "manager"),
        (managed("fleetagent"), ""),
        (managed("helm"), ""),
        ({"metadata": {}}, ""),
    ],
)
def test_writer_besides_fleet_is_found(kubevirt: dict[str, Any], writer: str) -> None:
    assert facts.other_writer(kubevirt) == writer
