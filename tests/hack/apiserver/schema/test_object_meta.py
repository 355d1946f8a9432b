from __future__ import annotations

from typing import Any

import pytest

from hack.apiserver.schema.object_meta import finalizer_warnings, validate_create, validate_update

OWNER = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "u"}


def created(rule: str = "subdomain", *, namespaced: bool = False, **meta: Any) -> list[str]:
    found = validate_create({"name": "a"} | meta, namespaced=namespaced, name_rule=rule)
    return [str(error) for error in found]


def updated(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    return [str(error) for error in validate_update({"name": "a"} | new, {"name": "a"} | old)]


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        pytest.param({}, [], id="a name is enough"),
        pytest.param({"name": ""}, ["metadata.name: Required value: name or generateName is required"], id="no name"),
        pytest.param({"name": "A"}, ['metadata.name: Invalid value: "A": a lowercase RFC 1123'], id="a bad name"),
        pytest.param({"generateName": "a-"}, [], id="a prefix with a dash"),
        pytest.param(
            {"generateName": "AB-"}, ['metadata.generateName: Invalid value: "AB-": a lowercase'], id="a bad prefix"
        ),
        pytest.param(
            {"namespace": "x"}, ["metadata.namespace: Forbidden: not allowed on this type"], id="a needless namespace"
        ),
        pytest.param(
            {"labels": {"a b": "c"}},
            ['metadata.labels: Invalid value: "a b": name part must consist of'],
            id="a bad label key",
        ),
        pytest.param(
            {"labels": {"a": "x" * 64}},
            [f'metadata.labels: Invalid value: "{"x" * 64}": must be no more than 63 bytes'],
            id="a label value that is too long",
        ),
        pytest.param({"annotations": {"a": "x" * 64}}, [], id="annotations may be longer"),
        pytest.param({"annotations": {"A.b/C": ""}}, [], id="annotation keys may have capitals"),
        pytest.param(
            {"annotations": {"a b": ""}},
            ['metadata.annotations: Invalid value: "a b": name part must consist of'],
            id="a bad annotation key",
        ),
        pytest.param(
            {"annotations": {"a": "x" * 262144}},
            ["metadata.annotations: Too long: may not be more than 262144 bytes"],
            id="too much in annotations",
        ),
        pytest.param({"ownerReferences": [OWNER | {"controller": True}]}, [], id="an owner"),
        pytest.param(
            {"ownerReferences": [{"apiVersion": "apps/"}]},
            [
                'metadata.ownerReferences.apiVersion: Invalid value: "apps/": version must not be empty',
                'metadata.ownerReferences.kind: Invalid value: "": must not be empty',
                'metadata.ownerReferences.name: Invalid value: "": must not be empty',
                'metadata.ownerReferences.uid: Invalid value: "": must not be empty',
            ],
            id="an owner that says nothing",
        ),
        pytest.param(
            {"ownerReferences": [OWNER | {"apiVersion": "v1", "kind": "Event"}]},
            ["metadata.ownerReferences: Invalid value: "],
            id="an Event owns nothing",
        ),
        pytest.param({"finalizers": ["example.com/a", "orphan"]}, [], id="finalizers"),
        pytest.param(
            {"finalizers": ["a b"]}, ['metadata.finalizers: Invalid value: "a b": name part'], id="a bad finalizer"
        ),
        pytest.param(
            {"finalizers": ["orphan", "foregroundDeletion"]},
            [
                (
                    'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: '
                    "finalizer orphan and foregroundDeletion cannot be both set"
                )
            ],
            id="contrary finalizers",
        ),
    ],
)
def test_metadata_of_a_new_object(meta: dict[str, Any], expected: list[str]) -> None:
    found = created(**meta)
    assert len(found) == len(expected)
    assert all(text.startswith(start) for text, start in zip(found, expected, strict=True)), found


def test_only_one_owner_controls() -> None:
    owners = [OWNER | {"controller": True}, OWNER | {"name": "e", "controller": True}]
    (found,) = created(ownerReferences=owners)
    assert found.endswith(
        "Only one reference can have Controller set to true. "
        'Found "true" in references for Deployment/d and Deployment/e'
    )


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        pytest.param({"namespace": "x"}, [], id="a namespace"),
        pytest.param({}, ["metadata.namespace: Required value"], id="none"),
        pytest.param(
            {"namespace": "a.b"}, ['metadata.namespace: Invalid value: "a.b": must not contain dots'], id="bad"
        ),
    ],
)
def test_a_namespaced_object_has_a_namespace(meta: dict[str, Any], expected: list[str]) -> None:
    assert created(namespaced=True, **meta) == expected


def test_the_rule_for_names_depends_on_the_kind() -> None:
    assert created("segment", name="System:Node") == []


@pytest.mark.parametrize("field", ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp"])
def test_what_never_changes(field: str) -> None:
    assert updated({field: "x"}, {field: "y"}) == [f'metadata.{field}: Invalid value: "y": field is immutable']


def test_a_finalizer_cannot_be_added_to_what_is_going() -> None:
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a.b/c"]}
    assert updated(going, going | {"finalizers": ["a.b/c", "a.b/d"]}) == [
        (
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
            'found new finalizers []string{"a.b/d"}'
        )
    ]
    assert updated(going, going | {"finalizers": []}) == []


def test_labels_are_judged_at_updates_too() -> None:
    assert len(updated({}, {"labels": {"a": "/"}})) == 1


@pytest.mark.parametrize(
    ("finalizer", "warning"),
    [
        pytest.param(
            "cleanup",
            'metadata.finalizers: "cleanup": prefer a domain-qualified finalizer name '
            "to avoid accidental conflicts with other finalizer writers",
            id="a bare word",
        ),
        pytest.param(
            "example.com",
            'metadata.finalizers: "example.com": prefer a domain-qualified finalizer name including a path (/) '
            "to avoid accidental conflicts with other finalizer writers",
            id="a domain alone",
        ),
    ],
)
def test_a_finalizer_that_others_might_use_too_is_warned_about(finalizer: str, warning: str) -> None:
    assert finalizer_warnings({"finalizers": [finalizer]}) == [warning]


@pytest.mark.parametrize("finalizer", ["orphan", "foregroundDeletion", "example.com/cleanup"])
def test_other_finalizers_are_not(finalizer: str) -> None:
    assert finalizer_warnings({"finalizers": [finalizer]}) == []


def test_only_new_finalizers_are_warned_about() -> None:
    assert finalizer_warnings({"finalizers": ["cleanup"]}, {"finalizers": ["cleanup"]}) == []
