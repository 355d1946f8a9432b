from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from upgrade_manager.kube.errors import Transient
from upgrade_manager.toolkit.charts.helm import Helm, Release, Revision
from upgrade_manager.toolkit.host.host_programs import Call, Output
from upgrade_manager.toolkit.run.errors import StepFailed

RANCHER = Release(name="rancher", namespace="cattle-system")
#: As helm 4.3 prints it.
HISTORY = (
    '[{"revision":2,"updated":"2026-11-22T16:00:07.356213879Z","status":"deployed","chart":"rancher-2.14.0",'
    '"app_version":"v2.14.0","description":"Upgrade complete"}]\n'
)


@dataclass(slots=True)
class Programs:
    """Implements HostPrograms with one output."""

    output: Output
    calls: list[Call] = field(default_factory=list)

    async def run(self, call: Call) -> Output:
        self.calls.append(call)
        return self.output


def helm(stdout: str = "", *, status: int = 0, stderr: str = "") -> Helm:
    return Helm(Programs(Output(status=status, stdout=stdout, stderr=stderr)), environment={})


async def test_latest_revision() -> None:
    found = await helm(HISTORY).latest(RANCHER)
    assert found == Revision(status="deployed", chart="rancher-2.14.0", app_version="v2.14.0")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "null", "[1]", '[{"status": "deployed"}]', "WARNING: kubeconfig is group-readable"]
)
async def test_history_of_another_form_fails(text: str) -> None:
    with pytest.raises(StepFailed, match=r"^helm history rancher: its output is not understood$"):
        await helm(text).latest(RANCHER)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        pytest.param("null\n", {}, id="none"),
        pytest.param("replicas: -3\nextraEnv: []\n", {"replicas": -3, "extraEnv": []}, id="some"),
    ],
)
async def test_values(text: str, values: dict[str, object]) -> None:
    assert await helm(text).values(RANCHER) == values


@pytest.mark.parametrize(
    ("text", "words"),
    [pytest.param("a: [", "is not YAML", id="yaml"), pytest.param("- a\n", "is not a mapping", id="list")],
)
async def test_values_of_another_form_fail(text: str, words: str) -> None:
    with pytest.raises(StepFailed, match=f"^helm get values rancher: its output {words}$"):
        await helm(text).values(RANCHER)


async def test_failed_read_is_retried() -> None:
    failing = helm(status=1, stderr="Error: Kubernetes cluster unreachable: connection refused\n")
    with pytest.raises(Transient, match=r"^helm history rancher returned 1: Error: Kubernetes cluster unreachable"):
        await failing.latest(RANCHER)


async def test_environment_is_stated() -> None:
    programs = Programs(Output(status=0, stdout=HISTORY))
    await Helm(programs, environment={"HOME": "/work"}).latest(RANCHER)
    assert [dict(call.environment) for call in programs.calls] == [{"HOME": "/work"}]
