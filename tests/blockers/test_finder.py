from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from upgrade_manager.api.blockers import Blocker, BlockerReason
from upgrade_manager.api.remedy import Remedy
from upgrade_manager.blockers.finder import RECHECK, SYNC_RETRY, Finder, find_blockers
from upgrade_manager.blockers.wait import (
    DeploymentWait,
    DrainWait,
    EvacuationWait,
    ImageWait,
    JobWait,
    PlanWait,
    RancherWait,
    Wait,
)
from upgrade_manager.kube.pager import Selection
from upgrade_manager.kube.resources import PODS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.blockers.conftest import FakeView
    from upgrade_manager.blockers.object_view import View

REASON = BlockerReason.POD_PENDING


def _wait(view: FakeView, *, age: float = 100, name: str = "j") -> JobWait:
    since = view.ago(age)
    return JobWait(namespace="ns", name=name, node="n1", since=since, stepped=since, pods="")


def _find(view: View, wait: Wait) -> Iterator[Blocker]:
    for pod in view.objects(Selection(resource=PODS, namespace=wait.namespace)):
        yield _blocker(wait, pod["metadata"]["name"])


def _blocker(wait: Wait, name: str) -> Blocker:
    return Blocker(
        reason=REASON,
        kind="Pod",
        namespace="ns",
        name=name,
        node="n1",
        message="m",
        remedies=(Remedy("r"),),
        since=wait.since,
    )


ROW: Finder[Wait] = Finder(wait=JobWait, reasons=(REASON,), overdue=lambda _: timedelta(seconds=60), find=_find)


def test_nothing_is_read_before_the_wait_is_overdue(view: FakeView) -> None:
    found = find_blockers([ROW], view, [_wait(view, age=59), _wait(view, age=20)], [])
    assert (found.blockers, found.after, view.read) == ([], 1, [])


def test_wait_that_is_not_to_be_looked_at_is_left_out(view: FakeView) -> None:
    row = replace(ROW, overdue=lambda _: None)
    found = find_blockers([row], view, [_wait(view)], [])
    assert (found.blockers, found.after, view.read) == ([], None, [])


def test_row_of_another_kind_is_not_run(view: FakeView) -> None:
    other = DeploymentWait(name="d", since=view.ago(100), deployment="d", pods="")
    found = find_blockers([ROW], view, [other], [])
    assert list(ROW.look(view, other)) == []
    assert (found.blockers, found.after, view.read) == ([], None, [])


def test_overdue_wait_has_the_found_blockers(view: FakeView) -> None:
    view.found["Pod"] = [{"metadata": {"name": "p"}}]
    wait = _wait(view, age=60)
    found = find_blockers([ROW, ROW], view, [wait], [])
    assert (found.blockers, found.after) == ([_blocker(wait, "p")] * 2, None)


def test_overdue_wait_without_blockers_is_checked_again(view: FakeView) -> None:
    found = find_blockers([ROW], view, [_wait(view, age=60)], [])
    assert (found.blockers, found.after) == ([], RECHECK)


def test_known_blockers_stay_until_their_objects_are_listed(view: FakeView) -> None:
    view.errors["Pod"] = ""
    wait = _wait(view)
    mine = _blocker(wait, "p")
    others = [replace(mine, node="n2"), replace(mine, reason=BlockerReason.JOB_SLOW)]
    found = find_blockers([ROW], view, [wait], [mine, *others])
    assert (found.blockers, found.after) == ([mine], SYNC_RETRY)


@pytest.mark.rule("blockers: nothing is reported on a state that may be out of date")
def test_nothing_is_found_in_an_outdated_state(view: FakeView) -> None:
    view.found["Pod"] = [{"metadata": {"name": "p"}}]
    view.is_current = False
    wait = _wait(view)
    found = find_blockers([ROW], view, [wait], [])
    assert (found.blockers, found.after, view.read) == ([], SYNC_RETRY, [])
    known = _blocker(wait, "q")
    assert find_blockers([ROW], view, [wait], [known]).blockers == [known]


@pytest.mark.rule("blockers: a missing permission is named when a reason cannot be read")
def test_missing_permission_is_named(view: FakeView) -> None:
    view.errors["Pod"] = 'pods is forbidden: User "x" cannot list resource "pods"'
    (found,) = find_blockers([ROW], view, [_wait(view)], []).blockers
    assert (found.reason, found.kind, found.name, found.node) == (REASON, "Job", "j", "n1")
    assert found.message.endswith(view.errors["Pod"])
    assert found.remedy == (
        "(1) Check the manager's permissions (deploy/rbac): kubectl auth can-i --list -n ns "
        "--as=system:serviceaccount:harvester-system:harvester-upgrade-manager "
        "(2) Show the object: kubectl describe job -n ns j"
    )


@pytest.mark.rule("blockers: a missing permission is named when a reason cannot be read")
@pytest.mark.parametrize(
    ("kind", "more", "resource"),
    [
        (RancherWait, (), "clusters.provisioning.cattle.io"),
        (PlanWait, (), "plans.upgrade.cattle.io"),
        (ImageWait, ("imported",), "virtualmachineimages.harvesterhci.io"),
        (DrainWait, ("undisturbed",), "secret"),
        (EvacuationWait, ("released",), "node"),
    ],
)
def test_missing_permission_comes_with_a_qualified_name(
    view: FakeView, kind: type[Wait], more: tuple[str, ...], resource: str
) -> None:
    view.errors["Pod"] = "list pods: 403 Forbidden: " + "x" * 200
    since = view.ago(100)
    fields: dict[str, Any] = dict.fromkeys(more, since)
    wait = kind(namespace="ns", name="j", since=since, detail="a\x1b\n" * 1000, **fields)
    (found,) = find_blockers([replace(ROW, wait=kind)], view, [wait], []).blockers
    assert found.message.startswith(f"{kind.kind.object_kind} ns/j: the upgrade waits for it too long (a a ")
    assert found.entry()["message"].endswith(f"and the manager cannot read the reason: {view.errors['Pod']}")
    assert found.remedy.endswith(f"kubectl describe {resource} -n ns j")


def test_blockers_found_before_an_error_are_kept(view: FakeView) -> None:
    view.errors["Pod"] = ""
    wait = _wait(view)

    def find(view: View, wait: Wait) -> Iterator[Blocker]:
        yield _blocker(wait, "first")
        yield from _find(view, wait)

    found = find_blockers([replace(ROW, find=find)], view, [wait], [])
    assert [one.name for one in found.blockers] == ["first"]


def test_error_of_a_finder_is_none_of_the_plan(view: FakeView) -> None:
    view.found["Pod"] = [{"metadata": None}]
    with capture_logs() as logs:
        found = find_blockers([ROW, replace(ROW, find=lambda _, wait: [_blocker(wait, "p")])], view, [_wait(view)], [])
    assert [one.name for one in found.blockers] == ["p"]
    assert [(log["event"], log["object"]) for log in logs] == [("finder failed", "j")]
