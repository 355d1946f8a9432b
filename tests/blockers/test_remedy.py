from __future__ import annotations

from upgrade_manager.blockers.remedy import steps


def test_only_several_steps_are_numbered() -> None:
    assert steps("kubectl get pods") == "kubectl get pods"
    assert steps("Start it", "kubectl get pods") == "(1) Start it (2) kubectl get pods"
