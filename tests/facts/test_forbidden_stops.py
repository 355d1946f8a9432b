from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from upgrade_manager.facts.forbidden_stops import MAX_REPORTED, Permissions, disruptions_left, read_report, report_of
from upgrade_manager.kube import objects

AT = datetime(2030, 1, 1, 12, tzinfo=UTC)
SINCE = "2030-01-01T12:00:00Z"


def instance(name: str, namespace: str = "ns") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace, "uid": f"uid-of-{name}"}}


def launcher(name: str, namespace: str = "ns", **status: Any) -> dict[str, Any]:
    labels = {"kubevirt.io": "virt-launcher", "kubevirt.io/created-by": f"uid-of-{name}", "app": "db"}
    return {"metadata": {"name": f"virt-launcher-{name}", "namespace": namespace, "labels": labels}, "status": status}


def budget(allowed: int | None, name: str = "b", **changes: Any) -> dict[str, Any]:
    status = {"observedGeneration": 1} | ({} if allowed is None else {"disruptionsAllowed": allowed})
    metadata = {"name": name, "namespace": "ns", "uid": name, "generation": 1}
    spec = {"selector": {"matchLabels": {"app": "db"}}}
    found: dict[str, dict[str, Any]] = {"metadata": metadata, "spec": spec, "status": status}
    return {key: {**found[key], **changes.get(key, {})} for key in found}


OF_KUBEVIRT = {"ownerReferences": [{"kind": "VirtualMachineInstance", "name": "a", "uid": "uid-of-a"}]}


@pytest.mark.rule("nodes: no VM is stopped against a user's PodDisruptionBudget, which KubeVirt's own are not")
@pytest.mark.parametrize(
    ("found", "forbids"),
    [
        pytest.param(budget(0), True, id="none left"),
        pytest.param(budget(1), False, id="one left"),
        pytest.param(budget(None), True, id="no status"),
        pytest.param(budget(1, metadata={"generation": 2}), True, id="not observed"),
        pytest.param(budget(0, metadata=OF_KUBEVIRT), False, id="of KubeVirt"),
        pytest.param(budget(0, metadata={"namespace": "other"}), False, id="of another namespace"),
        pytest.param(budget(0, spec={"selector": {"matchLabels": {"app": "web"}}}), False, id="of other Pods"),
        pytest.param(budget(0, spec={"selector": {}}), True, id="of all Pods"),
        pytest.param(budget(0, spec={"selector": None}), False, id="of no Pod"),
        pytest.param(
            budget(0, spec={"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}),
            True,
            id="by expression",
        ),
    ],
)
def test_budget_that_selects_the_launcher_forbids(found: dict[str, Any], forbids: bool) -> None:  # noqa: FBT001  # a case
    permissions = Permissions([found], [launcher("a"), launcher("b")])
    assert bool(permissions.forbidding(instance("a"))) is forbids
    assert permissions.is_used_up(instance("a")) is forbids


def test_ended_launcher_of_a_migration_does_not_count() -> None:
    permissions = Permissions([budget(0)], [launcher("a", phase="Succeeded")])
    assert permissions.forbidding(instance("a")) == []


@pytest.mark.parametrize(("allowed", "stops"), [(0, 0), (1, 1), (2, 2), (5, 3)])
def test_each_stop_uses_a_budget_up(allowed: int, stops: int) -> None:
    names = ("a", "b", "c")
    permissions = Permissions([budget(allowed)], [launcher(name) for name in names])
    stopped = []
    for one in map(instance, names):
        if not permissions.is_used_up(one):
            permissions.use(one)
            stopped.append(objects.name(one))
    assert len(stopped) == stops


def test_all_budgets_of_a_vm_count() -> None:
    found = [budget(1, "first"), budget(0, "second")]
    permissions = Permissions(found, [launcher("a")])
    assert [objects.name(one) for one in permissions.forbidding(instance("a"))] == ["second"]


def test_number_that_is_not_one_allows_nothing() -> None:
    assert disruptions_left(budget(None, status={"disruptionsAllowed": "many"})) == 0


@pytest.mark.parametrize(
    ("value", "found"),
    [
        pytest.param(f"{SINCE} ns/a,ns/b", (AT, ("ns/a", "ns/b")), id="two"),
        pytest.param(f"{SINCE} ns/a,b,/c,d/", (AT, ("ns/a",)), id="bad names"),
        pytest.param(f"{SINCE} ", None, id="no name"),
        pytest.param("yesterday ns/a", None, id="no time"),
        pytest.param("", None, id="empty"),
        pytest.param(None, None, id="absent"),
        pytest.param(7, None, id="no text"),
    ],
)
def test_report_that_a_user_has_changed_does_no_harm(value: object, found: object) -> None:
    assert read_report(value) == found


def test_report_is_read_as_it_was_written() -> None:
    names = [f"ns/vm-{number}" for number in range(MAX_REPORTED + 1)]
    assert read_report(report_of(names, since=SINCE)) == (AT, tuple(names[:MAX_REPORTED]))
