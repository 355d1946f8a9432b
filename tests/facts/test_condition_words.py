from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.facts.condition_words import unmet_conditions

row = pytest.param


def one(status: object = "False", type_: object = "Ready", **words: Any) -> dict[str, Any]:
    return {"type": type_, "status": status, **words}


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        row([one(message="probes: kubelet.", reason="Waiting")], ["Ready: probes: kubelet"], id="message"),
        row([one(reason="Waiting", message="")], ["Ready: Waiting"], id="reason"),
        row([one("Unknown", "Reconciled")], ["Reconciled: Unknown"], id="unknown, without words"),
        row([one(message="a\x1b[0m\nb" + "c" * 1_000_000)], ["Ready: a [0m b" + "c" * 293 + "…"], id="hostile"),
        row([one("True", message="all is well")], [], id="true"),
        row([one("False", name) for name in ("Paused", "Stalled", "RetryLimitExceeded")], [], id="False while well"),
        row([one("Unknown", "Paused", reason="R")], ["Paused: R"], id="unknown is never well"),
        row([None, 1, one(["False"]), one(1)], [], id="wrong types"),
        row({"type": "Ready"}, [], id="no list"),
    ],
)
def test_unmet_conditions(conditions: object, expected: list[str]) -> None:
    assert list(unmet_conditions({"status": {"conditions": conditions}})) == expected


def test_newer_conditions_of_cluster_api_are_read_too() -> None:
    status = {"conditions": [one(reason="Old")], "v1beta2": {"conditions": [one("Unknown", "NodeReady", reason="New")]}}
    assert list(unmet_conditions({"status": status})) == ["Ready: Old", "NodeReady: New"]
    assert list(unmet_conditions({})) == []
