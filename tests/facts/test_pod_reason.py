"""The end of a Pod's containers; tests/blockers/test_pods.py has the rows of Pods that do not run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from upgrade_manager.api.timestamps import parse_time
from upgrade_manager.facts.pod_reason import finished_at, pod_reason

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

TEN, NOON = "2026-01-01T10:00:00Z", "2026-01-01T12:00:00Z"


def pod(*containers: Object, **status: Any) -> Object:
    return {"metadata": {"name": "p"}, "status": {"phase": "Running", "containerStatuses": list(containers), **status}}


def ended(finished: str = "", **more: Any) -> Object:
    return {"state": {"terminated": {"finishedAt": finished, **more}}}


@pytest.mark.parametrize(
    ("found", "time"),
    [
        pytest.param(pod(ended(NOON), ended(TEN)), NOON, id="the last container"),
        pytest.param(pod(ended(TEN), initContainerStatuses=[ended(NOON)]), NOON, id="an init container"),
        pytest.param(pod({"lastState": ended(NOON)["state"]}), "", id="it runs again"),
        pytest.param(pod(ended()), "", id="without the time"),
        pytest.param({"metadata": {"name": "p"}}, "", id="without containers"),
    ],
)
def test_pod_has_finished_with_its_last_container(found: Object, time: str) -> None:
    assert finished_at(found) == parse_time(time)


@pytest.mark.parametrize(
    ("last", "text"),
    [
        pytest.param({"exitCode": 2, "reason": "OOMKilled"}, "exit code 1, Error: no such file", id="both ends failed"),
        pytest.param({}, "exit code 1, Error: no such file", id="the first failure"),
    ],
)
def test_present_end_of_a_container_comes_first(last: Object, text: str) -> None:
    crash = ended(exitCode=1, reason="Error", message="no such file")
    found = pod_reason(pod({**crash, "restartCount": 1, "lastState": {"terminated": last}}))
    assert found == ("ContainerFailing", f"a container is restarted after errors ({text})")


def test_crash_without_a_reason_has_its_exit_code() -> None:
    found = pod_reason(pod({**ended(exitCode=137), "restartCount": 1}))
    assert found == ("ContainerFailing", "a container is restarted after errors (exit code 137, no reason)")
