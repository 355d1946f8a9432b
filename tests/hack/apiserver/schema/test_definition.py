from __future__ import annotations

from typing import Any

import pytest

from hack.apiserver.schema.definition import definition
from upgrade_manager.api.crd import crd_manifest


def made(**spec: Any) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    known = {"group": "example.com", "names": names, "scope": "Cluster", "versions": [version]}
    return {"metadata": {"name": "widgets.example.com"}, "spec": known | spec}


def texts(new: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    return [str(error) for error in definition(new, old)]


VERSION = made()["spec"]["versions"][0]
NAMES = made()["spec"]["names"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, [], id="a sound definition"),
        pytest.param(
            {"group": "example"},
            [
                'metadata.name: Invalid value: "widgets.example.com": must be spec.names.plural+"."+spec.group',
                'spec.group: Invalid value: "example": should be a domain with at least one dot',
            ],
            id="a group without a dot",
        ),
        pytest.param({"scope": "World"}, ["spec.scope: Unsupported value"], id="an unknown scope"),
        pytest.param({"names": NAMES | {"kind": ""}}, ["spec.names.kind: Required value"], id="no kind"),
        pytest.param(
            {"names": NAMES | {"singular": "Widget"}}, ['spec.names.singular: Invalid value: "Widget"'], id="capitals"
        ),
        pytest.param(
            {"names": NAMES | {"kind": "W_"}},
            ['spec.names.kind: Invalid value: "W_": may have mixed case, but should otherwise match'],
            id="a bad kind",
        ),
        pytest.param(
            {"names": NAMES | {"listKind": "Widget"}},
            ['spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same'],
            id="one name for two kinds",
        ),
        pytest.param(
            {"versions": [VERSION | {"storage": False}]},
            ["spec.versions: Invalid value", "status.storedVersions: Invalid value: null"],
            id="none stored",
        ),
        pytest.param(
            {"versions": [VERSION, VERSION | {"storage": False}]}, ["spec.versions: Invalid value"], id="a name twice"
        ),
        pytest.param(
            {"versions": [VERSION | {"name": "V1"}]},
            ['spec.versions[0].name: Invalid value: "V1"', 'spec.version: Invalid value: "V1"'],
            id="a bad version",
        ),
        pytest.param(
            {"versions": [VERSION | {"schema": {}}]},
            ["spec.versions[0].schema.openAPIV3Schema: Required value"],
            id="no schema",
        ),
        pytest.param(
            {"versions": [VERSION | {"schema": {"openAPIV3Schema": {}}}]},
            ["spec.validation.openAPIV3Schema.type: Required value: must not be empty at the root"],
            id="no structural schema",
        ),
        pytest.param(
            {"versions": [VERSION | {"additionalPrinterColumns": [{"type": "text", "jsonPath": ".a["}]}]},
            [
                "spec.additionalPrinterColumns[0].name: Required value",
                (
                    'spec.additionalPrinterColumns[0].type: Invalid value: "text": must be one of '
                    "boolean,date,integer,number,string"
                ),
                'spec.additionalPrinterColumns[0].JSONPath: Invalid value: ".a[": is an invalid path',
            ],
            id="a bad column",
        ),
    ],
)
def test_a_new_definition(spec: dict[str, Any], expected: list[str]) -> None:
    found = texts(made(**spec))
    assert len(found) == len(expected), found
    assert all(text.startswith(start) for text, start in zip(found, expected, strict=True)), found


def test_the_real_definition_is_sound() -> None:
    assert texts(crd_manifest()) == []


def test_the_scope_never_changes() -> None:
    assert texts(made(scope="Namespaced"), made()) == ['spec.scope: Invalid value: "Namespaced": field is immutable']


def test_a_change_of_the_status_is_not_judged() -> None:
    broken = made(scope="World")
    assert texts(broken | {"status": {}}, broken) == []
