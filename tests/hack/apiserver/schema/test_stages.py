"""The stages of a write, in the terms of a custom kind."""

from __future__ import annotations

from typing import Any

import pytest

from hack.apiserver.admission import WriteOptions
from hack.apiserver.crds import rows
from hack.apiserver.identity import ADMIN
from hack.apiserver.schema.stages import shape, validate
from hack.apiserver.status import StatusError
from upgrade_manager.api.crd import crd_manifest

(ROW,) = rows(crd_manifest())


def plan(metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    head = {"apiVersion": "management.harvesterhci.io/v1beta1", "kind": "UpgradePlan"}
    return head | {"metadata": {"name": "demo"} | (metadata or {}), "spec": spec}


def options(mode: str = "") -> WriteOptions:
    return WriteOptions(user=ADMIN, field_validation=mode)


@pytest.mark.parametrize("mode", ["", "Warn"])
def test_an_unknown_field_is_dropped_with_a_warning(mode: str) -> None:
    write = options(mode)
    assert shape(ROW, plan(version="v1", nosuch=1), None, "CREATE", write) == plan(version="v1")
    assert write.warnings == ['unknown field "spec.nosuch"']


def test_an_unknown_field_is_dropped_in_silence() -> None:
    write = options("Ignore")
    assert shape(ROW, plan(version="v1", nosuch=1), None, "CREATE", write) == plan(version="v1")
    assert write.warnings == []


def test_unknown_fields_are_refused() -> None:
    with pytest.raises(StatusError) as refusal:
        shape(ROW, plan({"lables": {}}, version="v1", nosuch=1), None, "CREATE", options("Strict"))
    assert refusal.value.code == 400
    assert (
        refusal.value.message == 'UpgradePlan in version "v1beta1" cannot be handled as a UpgradePlan: '
        'strict decoding error: unknown field "metadata.lables", unknown field "spec.nosuch"'
    )


def test_metadata_of_a_wrong_type_cannot_be_read() -> None:
    with pytest.raises(StatusError) as refusal:
        shape(ROW, plan({"labels": {"a": 1}}), None, "CREATE", options())
    assert refusal.value.code == 400
    assert refusal.value.message.startswith(
        'UpgradePlan in version "v1beta1" cannot be handled as a UpgradePlan: json: cannot unmarshal number'
    )


def test_a_sound_object_passes() -> None:
    good = plan(version="v1")
    assert validate(ROW, good, None, "CREATE", options()) is good


def test_an_object_that_breaks_its_schema_is_refused_with_all_causes() -> None:
    with pytest.raises(StatusError) as refusal:
        validate(ROW, plan({"labels": {"a": "/"}}, version=""), None, "CREATE", options())
    assert refusal.value.code == 422
    assert refusal.value.message.startswith(
        'UpgradePlan.management.harvesterhci.io "demo" is invalid: [metadata.labels: '
    )
    assert refusal.value.details is not None
    assert [cause["field"] for cause in refusal.value.details["causes"]] == ["metadata.labels", "spec.version"]


def test_rules_are_not_run_on_an_object_of_wrong_types() -> None:
    with pytest.raises(StatusError) as refusal:
        validate(ROW, plan(force=1), None, "CREATE", options())
    assert refusal.value.details is not None
    texts = [cause["message"] for cause in refusal.value.details["causes"]]
    assert texts[-1].startswith("Invalid value: null: some validation rules were not checked")
    assert len(texts) == 2


def test_a_list_that_was_no_set_before_may_stay_so() -> None:
    twice = {"nodeUpgradeOption": {"pauseNodes": ["a", "a"]}}
    old = plan(version="v1", **twice)
    assert validate(ROW, plan(version="v1", force=True, **twice), old, "UPDATE", options())


def test_a_finalizer_that_others_might_use_is_warned_about() -> None:
    write = options()
    validate(ROW, plan({"finalizers": ["cleanup"]}, version="v1"), None, "CREATE", write)
    assert len(write.warnings) == 1


def test_deletions_pass() -> None:
    assert shape(ROW, plan(), None, "DELETE", options()) == plan()
    assert validate(ROW, plan(), None, "DELETE", options()) == plan()


def test_a_patch_that_makes_what_cannot_be_read_is_an_invalid_patch() -> None:
    write = WriteOptions(user=ADMIN, field_validation="Strict", patch=True)
    with pytest.raises(StatusError) as refusal:
        shape(ROW, plan(version="v1", nosuch=1), plan(version="v1"), "UPDATE", write)
    assert (refusal.value.code, refusal.value.reason) == (422, "Invalid")
    assert refusal.value.message.startswith(' "" is invalid: patch: Invalid value: "{')
    assert refusal.value.message.endswith('}": strict decoding error: unknown field "spec.nosuch"')


def test_unknown_metadata_is_dropped_with_a_warning() -> None:
    write = options("Warn")
    shape(ROW, plan({"lables": {}}, version="v1"), None, "CREATE", write)
    assert write.warnings == ['unknown field "metadata.lables"']


def test_a_fault_of_the_status_is_told_with_a_path_from_there() -> None:
    bad = plan(version="v1") | {"status": {"currentPhase": 1}}
    with pytest.raises(StatusError) as refusal:
        validate(ROW, bad, plan(version="v1"), "UPDATE", WriteOptions(user=ADMIN, subresource="status"))
    assert refusal.value.details is not None
    assert refusal.value.details["causes"][0] == {
        "reason": "FieldValueTypeInvalid",
        "message": 'Invalid value: "integer": currentPhase in body must be of type string: "integer"',
        "field": "status.currentPhase",
    }


def test_a_status_may_be_taken_away() -> None:
    old = plan(version="v1") | {"status": {}}
    assert validate(ROW, plan(version="v1"), old, "UPDATE", WriteOptions(user=ADMIN, subresource="status"))
