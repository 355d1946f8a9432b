"""Which CustomResourceDefinitions are taken, and what becomes of them."""
# ruff: noqa: E501  # what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.api_calls import Row, answered, get, invalid, merge, play, post, put
from tests.support.gadgets import DEFINITIONS, NAME, OPEN, gadget, unfit
from tests.support.shapes import GROUP

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers


def _version(**more: object) -> dict[str, object]:
    return {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": OPEN}} | more


ROWS = [
    Row(
        title="a definition is completed",
        when=post(DEFINITIONS, gadget()),
        look=("spec.names", "spec.conversion", "spec.scope", "spec.preserveUnknownFields", "metadata.generation"),
        then=answered(
            201,
            **{
                "spec.names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
                "spec.conversion": {"strategy": "None"},
                "spec.scope": "Namespaced",
                "spec.preserveUnknownFields": "absent",
                "metadata.generation": 1,
            },
        ),
    ),
    Row(
        title="a definition of another name than its kind is refused",
        when=post(DEFINITIONS, gadget() | {"metadata": {"name": "other.$word.example.io"}}),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            ("metadata.name", 'Invalid value: "other.$ns.example.io": must be spec.names.plural+"."+spec.group'),
            name="other.$ns.example.io",
        ),
    ),
    Row(
        title="a definition without a scope is refused",
        when=post(DEFINITIONS, gadget(scope="")),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            ("spec.scope", "Required value"),
            name="gadgets.$ns.example.io",
        ),
    ),
    Row(
        title="a definition of an unknown scope is refused",
        when=post(DEFINITIONS, gadget(scope="Galaxy")),
        then=unfit(
            ("spec.scope", 'Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"'),
        ),
    ),
    Row(
        title="a definition without versions is refused",
        when=post(DEFINITIONS, gadget(versions=[])),
        then=unfit(
            ("spec.versions", "Invalid value: []: must have exactly one version marked as storage version"),
            ("status.storedVersions", "Invalid value: null: must have at least one stored version"),
        ),
    ),
    Row(
        title="a definition without a stored version is refused",
        when=post(DEFINITIONS, gadget(versions=[_version(storage=False)])),
        then=unfit(
            ("spec.versions", "Invalid value: $value: must have exactly one version marked as storage version"),
            ("status.storedVersions", "Invalid value: null: must have at least one stored version"),
        ),
    ),
    Row(
        title="a definition with two stored versions is refused",
        when=post(DEFINITIONS, gadget(versions=[_version(), _version(name="v2")])),
        then=unfit(
            ("spec.versions", "Invalid value: $value: must have exactly one version marked as storage version"),
            ("status.storedVersions", 'Invalid value: ["v1"]: must have the storage version v2'),
        ),
    ),
    Row(
        title="a definition with a version twice is refused",
        when=post(DEFINITIONS, gadget(versions=[_version(), _version(storage=False)])),
        then=unfit(
            ("spec.versions", "Invalid value: $value: must contain unique version names"),
        ),
    ),
    Row(
        title="a definition with a bad version name is refused",
        when=post(DEFINITIONS, gadget(versions=[_version(name="V 1")])),
        then=unfit(
            (
                "spec.version",
                "Invalid value: \"V 1\": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
            ),
            (
                "spec.versions[0].name",
                "Invalid value: \"V 1\": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
            ),
        ),
    ),
    Row(
        title="a definition without a schema is refused",
        when=post(DEFINITIONS, gadget(versions=[{"name": "v1", "served": True, "storage": True}])),
        then=unfit(
            ("spec.versions[0].schema.openAPIV3Schema", "Required value"),
        ),
    ),
    Row(
        title="a definition without names is refused",
        when=post(DEFINITIONS, gadget(names={})),
        then=unfit(
            ("metadata.name", 'Invalid value: "gadgets.$ns.example.io": must be spec.names.plural+"."+spec.group'),
            ("spec.names.kind", "Required value"),
            ("spec.names.listKind", "Required value"),
            ("spec.names.plural", "Required value"),
            ("spec.names.singular", "Required value"),
        ),
    ),
    Row(
        title="a definition with a bad kind is refused",
        when=post(DEFINITIONS, gadget(names={"plural": "gadgets", "kind": "Gad get"})),
        then=unfit(
            (
                "spec.names.kind",
                "Invalid value: \"Gad get\": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
            ),
            (
                "spec.names.listKind",
                "Invalid value: \"Gad getList\": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
            ),
            (
                "spec.names.singular",
                "Invalid value: \"gad get\": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
            ),
        ),
    ),
    Row(
        title="a definition whose kind is its list's is refused",
        when=post(DEFINITIONS, gadget(names={"plural": "gadgets", "kind": "Gadget", "listKind": "Gadget"})),
        then=unfit(
            ("spec.names.listKind", 'Invalid value: "Gadget": kind and listKind may not be the same'),
        ),
    ),
    Row(
        title="a definition of a core group is refused",
        when=post(DEFINITIONS, gadget(group="") | {"metadata": {"name": "gadgets."}}),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "metadata.name",
                "Invalid value: \"gadgets.\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            ),
            ("spec.group", "Required value"),
            name="gadgets.",
        ),
    ),
    Row(
        title="a definition of a group without a dot is refused",
        when=post(DEFINITIONS, gadget(group="word") | {"metadata": {"name": "gadgets.word"}}),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            ("spec.group", 'Invalid value: "word": should be a domain with at least one dot'),
            name="gadgets.word",
        ),
    ),
    Row(
        title="a definition in the protected groups needs an approval",
        when=post(DEFINITIONS, gadget(group="$word.k8s.io") | {"metadata": {"name": "gadgets.$word.k8s.io"}}),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            (
                "metadata.annotations[api-approved.kubernetes.io]",
                'Required value: protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111',
            ),
            name="gadgets.$ns.k8s.io",
        ),
    ),
    Row(
        title="a column without a path is refused",
        when=post(
            DEFINITIONS,
            gadget(versions=[_version(additionalPrinterColumns=[{"name": "a", "type": "string", "jsonPath": ""}])]),
        ),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            ("spec.additionalPrinterColumns[0].JSONPath", "Required value"),
            name="gadgets.$ns.example.io",
        ),
    ),
    Row(
        title="a column of an unknown type is refused",
        when=post(
            DEFINITIONS,
            gadget(versions=[_version(additionalPrinterColumns=[{"name": "a", "type": "text", "jsonPath": ".spec"}])]),
        ),
        then=unfit(
            (
                "spec.additionalPrinterColumns[0].type",
                'Invalid value: "text": must be one of boolean,date,integer,number,string',
            ),
        ),
    ),
    Row(
        title="a column with a bad path is refused",
        when=post(
            DEFINITIONS,
            gadget(
                versions=[_version(additionalPrinterColumns=[{"name": "a", "type": "string", "jsonPath": "spec["}])]
            ),
        ),
        then=unfit(
            (
                "spec.additionalPrinterColumns[0].JSONPath",
                'Invalid value: "spec[": must be a simple json path starting with .',
            ),
        ),
    ),
    Row(
        title="a scale without its paths is refused",
        when=post(DEFINITIONS, gadget(versions=[_version(subresources={"scale": {}})])),
        then=unfit(
            ("spec.subresources.scale.specReplicasPath", "Required value"),
            ("spec.subresources.scale.statusReplicasPath", "Required value"),
        ),
    ),
    Row(
        title="the scope does not change",
        when=merge(f"{DEFINITIONS}/widgets.{GROUP}", {"spec": {"scope": "Cluster"}}),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            ("spec.scope", 'Invalid value: "Cluster": field is immutable'),
            name="widgets.shapes.example.io",
        ),
    ),
    Row(
        title="the group does not change",
        given=(post(DEFINITIONS, gadget()),),
        when=merge(f"{DEFINITIONS}/{NAME}", {"spec": {"group": "other.io"}}),
        then=invalid(
            "CustomResourceDefinition.apiextensions.k8s.io",
            ("spec.group", 'Invalid value: "other.io": field is immutable'),
            name="gadgets.$ns.example.io",
        ),
    ),
    Row(
        title="the kind of a definition that is established does not change",
        given=(post(DEFINITIONS, gadget()), get(f"{DEFINITIONS}/{NAME}")),
        when=merge(f"{DEFINITIONS}/{NAME}", {"spec": {"names": {"plural": "widgets"}}}),
        then=unfit(
            ("spec.names.plural", 'Invalid value: "widgets": field is immutable'),
        ),
    ),
    Row(
        title="an update without a resourceVersion is refused",
        given=(post(DEFINITIONS, gadget()),),
        when=put(f"{DEFINITIONS}/{NAME}", gadget()),
        then=invalid(
            "customresourcedefinitions.apiextensions.k8s.io",
            ("metadata.resourceVersion", "Invalid value: 0: must be specified for an update"),
            name="gadgets.$ns.example.io",
        ),
    ),
    Row(
        title="a schema may change",
        given=(post(DEFINITIONS, gadget()),),
        when=merge(
            f"{DEFINITIONS}/{NAME}",
            {
                "spec": {
                    "versions": [
                        _version(
                            schema={"openAPIV3Schema": {"type": "object", "properties": {"a": {"type": "string"}}}}
                        )
                    ]
                }
            },
        ),
        look=("spec.versions.0.schema", "metadata.generation"),
        then=answered(
            200,
            **{
                "spec.versions.0.schema": {
                    "openAPIV3Schema": {"type": "object", "properties": {"a": {"type": "string"}}}
                },
                "metadata.generation": 2,
            },
        ),
    ),
    Row(
        title="a stored version may not go",
        given=(post(DEFINITIONS, gadget()), get(f"{DEFINITIONS}/{NAME}")),
        when=merge(f"{DEFINITIONS}/{NAME}", {"spec": {"versions": [_version(name="v2")]}}),
        then=unfit(
            (
                "status.storedVersions[0]",
                'Invalid value: "v1": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions',
            ),
        ),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_definition(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
