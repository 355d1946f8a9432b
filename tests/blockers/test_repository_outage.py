from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from upgrade_manager.blockers.finder import find_blockers
from upgrade_manager.blockers.repository_outage import FINDERS
from upgrade_manager.blockers.wait import DeploymentWait, ServiceWait

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.blockers.conftest import FakeView
    from upgrade_manager.api.blockers import Blocker
    from upgrade_manager.blockers.wait import RepositoryWait

PODS = "management.harvesterhci.io/upgrade-component=repo"


def blockers(view: FakeView, kind: type[RepositoryWait], *, age: float = 60) -> Sequence[Blocker]:
    since = view.ago(age)
    wait = kind(namespace="ns", name="r", since=since, deployment="d", pods=PODS, detail="1 of 2 replicas")
    return find_blockers(FINDERS, view, [wait], []).blockers


def pod(view: FakeView, name: str, *, age: float, phase: str = "Pending") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ns", "creationTimestamp": view.time(age)}
    return {"metadata": metadata, "spec": {"nodeName": "n1"}, "status": {"phase": phase}}


@pytest.mark.parametrize("kind", [DeploymentWait, ServiceWait])
def test_pods_that_do_not_start_are_named(view: FakeView, kind: type[RepositoryWait]) -> None:
    view.found["Pod"] = [pod(view, "a", age=61), pod(view, "b", age=30), pod(view, "c", age=61, phase="Running")]
    assert [(one.reason, one.name, one.node) for one in blockers(view, kind)] == [("PodPending", "a", "n1")]
    assert [one.label_selector for one in view.read] == [PODS]


@pytest.mark.parametrize("kind", [DeploymentWait, ServiceWait])
def test_object_is_named_if_no_pod_is_to_blame(view: FakeView, kind: type[RepositoryWait]) -> None:
    assert blockers(view, kind, age=59) == []
    view.found["Pod"] = [pod(view, "c", age=61, phase="Running")]
    (found,) = blockers(view, kind)
    assert (found.reason, found.kind, found.name, found.since) == (
        "RepositoryUnavailable",
        kind.kind.object_kind,
        "r",
        view.ago(60),
    )
    assert found.message == f"{kind.kind.object_kind} ns/r: the upgrade repository does not serve (1 of 2 replicas)"
    assert found.remedy == (
        f"(1) Show the events of its Pods: kubectl describe pods -n ns -l {PODS} "
        "(2) If they run but are not ready, restart them: kubectl -n ns rollout restart deploy/d"
    )


@pytest.mark.parametrize("kind", [DeploymentWait, ServiceWait])
def test_crash_loop_stays_while_its_container_runs(view: FakeView, kind: type[RepositoryWait]) -> None:
    found = pod(view, "a", age=600, phase="Running")
    ended: dict[str, Any] = {"terminated": {"exitCode": 1, "reason": "Error"}}
    states: list[dict[str, Any]] = [{"waiting": {"reason": "CrashLoopBackOff"}}, {"running": {}}, ended]
    for state in states:
        found["status"]["containerStatuses"] = [{"restartCount": 1, "state": state, "lastState": ended}]
        view.found["Pod"] = [found]
        assert [(one.reason, one.name) for one in blockers(view, kind)] == [("ContainerFailing", "a")]


def test_pod_that_has_just_started_gets_its_time(view: FakeView) -> None:
    view.found["Pod"] = [pod(view, "a", age=59, phase="Running"), pod(view, "b", age=61, phase="Running")]
    since = view.ago(60)
    wait = DeploymentWait(namespace="ns", name="r", since=since, deployment="d", pods=PODS)
    found = find_blockers(FINDERS, view, [wait], [])
    assert (found.blockers, found.after) == ([], 1)
