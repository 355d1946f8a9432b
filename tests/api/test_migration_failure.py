"""The policy for VMs whose migration fails, by field and kind of toolkit."""

from __future__ import annotations

import pytest

from upgrade_manager.api.keys import ToolkitKind
from upgrade_manager.api.migration_failure import (
    OnMigrationFailure,
    invalid,
    policy,
    read_policy,
    read_report,
    refusal,
    report_of,
    summary,
)

OWN, HARVESTER = ToolkitKind.OWN, ToolkitKind.HARVESTER
LEFT, STOPPED = "a VM whose migration fails is left to you", "a VM whose migration fails is stopped"
AS_HARVESTER = "as Harvester's toolkit (kind harvester) does"


@pytest.mark.parametrize("value", [None, "", "wait", 1, ["Wait"], {}], ids=repr)
def test_other_values_name_no_policy(value: object) -> None:
    assert read_policy(value) is None


@pytest.mark.parametrize("value", OnMigrationFailure)
def test_policy_is_read_by_its_name(value: OnMigrationFailure) -> None:
    assert read_policy(str(value)) is value


@pytest.mark.parametrize(
    ("requested", "kind", "expected", "line"),
    [
        pytest.param("Wait", OWN, "Wait", f"Wait: {LEFT}", id="own waits"),
        pytest.param("Stop", OWN, "Stop", f"Stop: {STOPPED}", id="own stops"),
        pytest.param(None, OWN, "Wait", f"Wait: {LEFT}, by default", id="own by default"),
        pytest.param("Later", OWN, "Wait", f"Wait: {LEFT}, by default", id="own with an unknown value"),
        pytest.param(None, "", "Wait", f"Wait: {LEFT}, by default", id="unknown kind by default"),
        pytest.param("Stop", "", "Stop", f"Stop: {STOPPED}", id="unknown kind stops"),
        pytest.param("Wait", HARVESTER, "Stop", f"Stop: {STOPPED}, {AS_HARVESTER}", id="harvester cannot wait"),
        pytest.param("Stop", HARVESTER, "Stop", f"Stop: {STOPPED}, {AS_HARVESTER}", id="harvester stops"),
        pytest.param(None, HARVESTER, "Stop", f"Stop: {STOPPED}, {AS_HARVESTER}", id="harvester by default"),
    ],
)
def test_policy_and_its_summary(requested: object, kind: str, expected: str, line: str) -> None:
    assert policy(requested, kind=kind) == expected
    assert summary(requested, kind=kind) == line


@pytest.mark.parametrize(
    ("requested", "kind", "refused"),
    [
        ("Wait", HARVESTER, True),
        ("Stop", HARVESTER, False),
        (None, HARVESTER, False),
        ("Wait", OWN, False),
        ("Stop", OWN, False),
    ],
)
def test_only_harvesters_toolkit_refuses_to_wait(requested: object, kind: str, *, refused: bool) -> None:
    why = refusal(requested, kind=kind)
    assert why.startswith("spec.nodeUpgradeOption.onMigrationFailure is Wait, and Harvester's toolkit") is refused
    assert ("Set it to Stop or remove it" in why) is bool(why) is refused


@pytest.mark.parametrize("values", [{}, {"default/db": "stop", "default/web": 'a, b"c'}], ids=["none", "two"])
def test_reported_values_are_read_again(values: dict[str, str]) -> None:
    assert read_report(report_of(values)) == values


def test_report_of_values_is_bounded() -> None:
    values = {f"default/vm-{number:03}": "x" * 1000 for number in range(200)}
    assert read_report(report_of(values)) == {f"default/vm-{number:03}": "x" * 40 for number in range(50)}


@pytest.mark.parametrize("text", ["", "x", "[1]", "1", '{"default/db": 1}'])
def test_other_texts_report_nothing(text: str) -> None:
    assert read_report(text) == {}


@pytest.mark.parametrize("size", [60_000, 200_000], ids=["nested", "nested and long"])
def test_nested_text_reports_nothing(size: int) -> None:
    assert read_report("[" * size) == {}


def test_text_that_is_too_long_reports_nothing() -> None:
    values = {"default/db": "stop"}
    assert read_report(report_of(values).ljust(2**16)) == values
    assert read_report(report_of(values).ljust(2**16 + 1)) == {}


def test_longest_report_is_read_again() -> None:
    values = {f"{number:063}/{'n' * 253}": "\N{PARTY POPPER}" * 40 for number in range(50)}
    assert read_report(report_of(values)) == values


def test_invalid_value_is_named_with_its_annotation() -> None:
    key = "management.harvesterhci.io/on-migration-failure"
    assert invalid("stop") == (
        f"its annotation {key} is 'stop', which is neither Wait nor Stop, so that the upgrade does not stop it"
    )
