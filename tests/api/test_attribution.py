from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upgrade_manager.api.annotations import WAIVER_ANNOTATIONS
from upgrade_manager.api.attribution import ANNOTATIONS, FIELDS, NOT_RECORDED, digest, last_changed_by, signed
from upgrade_manager.api.keys import ANNOTATION_LAST_CHANGED_BY, ANNOTATION_SKIP_WEBHOOK, ANNOTATION_TOOLKIT_IMAGE
from upgrade_manager.api.spec import UpgradePlanSpec

#: A value other than the default of each hashed field.
CHANGED: dict[str, dict[str, Any]] = {
    "spec.attempt": {"attempt": 2},
    "spec.force": {"force": True},
    "spec.paused": {"paused": True},
    "spec.nodeUpgradeOption.onMigrationFailure": {"nodeUpgradeOption": {"onMigrationFailure": "Stop"}},
    "spec.nodeUpgradeOption.pauseAfter": {"nodeUpgradeOption": {"pauseAfter": 1}},
    "spec.nodeUpgradeOption.pauseBefore": {"nodeUpgradeOption": {"pauseBefore": ["Drain"]}},
    "spec.nodeUpgradeOption.pauseNodes": {"nodeUpgradeOption": {"pauseNodes": ["node-1"]}},
}
USERS = [
    "alice",
    "alice of accounting",
    "system:serviceaccount:flux-system:kustomize-controller",
    "Zoë Ünïcode",
    "line\nbreak",
    "u" * 5000,
]


def spec(**content: Any) -> UpgradePlanSpec:
    return UpgradePlanSpec.read({"version": "v1.8.0", **content})


def paused(*names: str) -> UpgradePlanSpec:
    return spec(nodeUpgradeOption={"pauseNodes": [*names]})


def test_hash_of_a_plan_never_changes() -> None:
    """A manager of another version must read the annotations of this one."""
    assert digest(spec(), {}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert digest(
        spec(force=True, nodeUpgradeOption={"pauseNodes": ["b", "a"]}), {ANNOTATION_SKIP_WEBHOOK: "true"}
    ) == ("22a9761d5151d4ccda4356a0eee843ee63156eb61d3e4a56c20c32b938b048c1")


@pytest.mark.parametrize("name", FIELDS)
def test_hash_covers_each_field(name: str) -> None:
    assert digest(spec(**CHANGED[name]), {}) != digest(spec(), {})


@pytest.mark.parametrize("key", ANNOTATIONS)
def test_hash_covers_each_annotation(key: str) -> None:
    hashes = {digest(spec(), annotations) for annotations in ({}, {key: ""}, {key: "true"}, {key: "false"})}
    assert len(hashes) == 4


def test_every_waiver_is_hashed() -> None:
    assert set(ANNOTATIONS) >= set(WAIVER_ANNOTATIONS)


@pytest.mark.parametrize(
    ("content", "annotations"),
    [
        pytest.param({"restoreVM": True}, {}, id="another field"),
        pytest.param({"force": False}, {}, id="a default that is written out"),
        pytest.param({"nodeUpgradeOption": {"pauseNodes": []}}, {}, id="an empty list"),
        pytest.param({}, {"a": "b", ANNOTATION_TOOLKIT_IMAGE: "a/b"}, id="another annotation"),
        pytest.param({}, {ANNOTATION_LAST_CHANGED_BY: "alice 0"}, id="the annotation itself"),
    ],
)
def test_hash_ignores_what_is_not_recorded(content: dict[str, Any], annotations: dict[str, str]) -> None:
    assert digest(spec(**content), annotations) == digest(spec(), {})


def test_hash_ignores_the_order_of_a_set() -> None:
    assert digest(paused("a", "b"), {}) == digest(paused("b", "a"), {}) != digest(paused("ab"), {})


@pytest.mark.parametrize("user", USERS, ids=lambda user: user[:12])
def test_user_is_named_while_the_hash_fits(user: str) -> None:
    annotations = {ANNOTATION_LAST_CHANGED_BY: signed(user, paused("a"), {})}
    assert last_changed_by(paused("a"), annotations) == user
    assert last_changed_by(paused("a", "b"), annotations) == NOT_RECORDED
    assert last_changed_by(paused("a"), annotations | {ANNOTATION_SKIP_WEBHOOK: "true"}) == NOT_RECORDED


@pytest.mark.parametrize("value", [None, "", " ", "alice", "alice ", digest(spec(), {}), f" {digest(spec(), {})}"])
def test_user_is_not_recorded_without_a_valid_annotation(value: str | None) -> None:
    annotations = {} if value is None else {ANNOTATION_LAST_CHANGED_BY: value}
    assert last_changed_by(spec(), annotations) == NOT_RECORDED


@given(user=st.text(min_size=1), names=st.lists(st.text(), max_size=5))
def test_any_name_is_read_back(user: str, names: list[str]) -> None:
    annotations = {ANNOTATION_LAST_CHANGED_BY: signed(user, paused(*names), {})}
    assert last_changed_by(paused(*names), annotations) == user
