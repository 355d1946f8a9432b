"""The metadata that a create takes: system fields, labels, annotations."""
# ruff: noqa: E501  # what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.api_calls import Row, answered, invalid, play, post, refused
from tests.support.maps import MAPS, config_map
from tests.support.shapes import VERSION, WIDGETS, widget

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers


ROWS = [
    Row(
        title="a resourceVersion is refused",
        when=post(MAPS, config_map(name="one", resourceVersion="5")),
        then=refused(500, "", "resourceVersion should not be set on objects to be created", None),
    ),
    Row(
        title="a resourceVersion is refused for a custom kind",
        when=post(WIDGETS, widget() | {"metadata": {"name": "one", "resourceVersion": "5"}}),
        then=refused(500, "", "resourceVersion should not be set on objects to be created", None),
    ),
    Row(
        title="system fields that are sent are replaced",
        when=post(
            MAPS,
            config_map(
                name="one",
                uid="mine",
                creationTimestamp="2001-01-01T00:00:00Z",
                deletionTimestamp="2001-01-01T00:00:00Z",
                deletionGracePeriodSeconds=5,
                generation=7,
                selfLink="/x",
            ),
        ),
        look=("metadata",),
        then=answered(
            201,
            metadata={
                "name": "one",
                "namespace": "$ns",
                "uid": "$uid",
                "resourceVersion": "$version",
                "generation": 7,
                "creationTimestamp": "$time",
            },
        ),
    ),
    Row(
        title="system fields that are sent are replaced for a custom kind",
        when=post(
            WIDGETS,
            widget()
            | {
                "metadata": {
                    "name": "one",
                    "uid": "mine",
                    "creationTimestamp": "2001-01-01T00:00:00Z",
                    "deletionTimestamp": "2001-01-01T00:00:00Z",
                    "deletionGracePeriodSeconds": 5,
                    "generation": 7,
                    "selfLink": "/x",
                }
            },
        ),
        look=("metadata",),
        then=answered(
            201,
            metadata={
                "creationTimestamp": "$time",
                "generation": 1,
                "name": "one",
                "namespace": "$ns",
                "resourceVersion": "$version",
                "uid": "$uid",
            },
        ),
    ),
    Row(
        title="a label key with a space is refused",
        when=post(MAPS, config_map(name="one", labels={"a b": "c"})),
        then=invalid(
            "ConfigMap",
            (
                "metadata.labels",
                "Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ),
        ),
    ),
    Row(
        title="a label value with a space is refused",
        when=post(MAPS, config_map(name="one", labels={"a": "b c"})),
        then=invalid(
            "ConfigMap",
            (
                "metadata.labels",
                "Invalid value: \"b c\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
            ),
        ),
    ),
    Row(
        title="a label value that is too long is refused",
        when=post(MAPS, config_map(name="one", labels={"a": "b" * 64})),
        then=invalid(
            "ConfigMap",
            (
                "metadata.labels",
                'Invalid value: "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb": must be no more than 63 bytes',
            ),
        ),
    ),
    Row(
        title="a label key with two slashes is refused",
        when=post(WIDGETS, widget() | {"metadata": {"name": "one", "labels": {"a/b/c": "d"}}}),
        then=invalid(
            "Widget.shapes.example.io",
            (
                "metadata.labels",
                "Invalid value: \"a/b/c\": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
            ),
        ),
    ),
    Row(
        title="a label value that is a number is refused",
        when=post(MAPS, config_map(name="one", labels={"a": 1})),
        then=refused(
            400,
            "BadRequest",
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string',
            None,
        ),
    ),
    Row(
        title="a label value that is a number is refused for a custom kind",
        when=post(WIDGETS, widget() | {"metadata": {"name": "one", "labels": {"a": 1}}}),
        then=refused(
            400,
            "BadRequest",
            'Widget in version "v1" cannot be handled as a Widget: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string',
            None,
        ),
    ),
    Row(
        title="an annotation that is a boolean is refused",
        when=post(MAPS, config_map(name="one", annotations={"a": True})),
        then=refused(
            400,
            "BadRequest",
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.annotations of type string',
            None,
        ),
    ),
    Row(
        title="an annotation key with a space is refused",
        when=post(MAPS, config_map(name="one", annotations={"a b": "c"})),
        then=invalid(
            "ConfigMap",
            (
                "metadata.annotations",
                "Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ),
        ),
    ),
    Row(
        title="annotation keys are judged without regard to case",
        when=post(MAPS, config_map(name="one", annotations={"Example.IO/a": "b"})),
        look=("metadata.annotations",),
        then=answered(201, **{"metadata.annotations": {"Example.IO/a": "b"}}),
    ),
    Row(
        title="annotations that are too large are refused",
        when=post(MAPS, config_map(name="one", annotations={"a": "b" * 262144})),
        then=invalid("ConfigMap", ("metadata.annotations", "Too long: may not be more than 262144 bytes")),
    ),
    Row(
        title="metadata that is a text is refused",
        when=post(MAPS, {"metadata": "one"}),
        then=refused(
            400,
            "BadRequest",
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal string into Go struct field ConfigMap.metadata of type v1.ObjectMeta',
            None,
        ),
    ),
    Row(
        title="metadata that is a text is refused for a custom kind",
        when=post(WIDGETS, {"apiVersion": VERSION, "kind": "Widget", "metadata": "one"}),
        then=refused(
            400,
            "BadRequest",
            'Widget in version "v1" cannot be handled as a Widget: json: cannot unmarshal string into Go value of type v1.ObjectMeta',
            None,
        ),
    ),
    Row(
        title="a name that is a number is refused",
        when=post(MAPS, {"metadata": {"name": 1}}),
        then=refused(
            400,
            "BadRequest",
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string',
            None,
        ),
    ),
    Row(
        title="a name that is a number is refused for a custom kind",
        when=post(WIDGETS, widget() | {"metadata": {"name": 1}}),
        then=refused(
            400,
            "BadRequest",
            'Widget in version "v1" cannot be handled as a Widget: json: cannot unmarshal number into Go struct field ObjectMeta.name of type string',
            None,
        ),
    ),
    Row(
        title="nulls in metadata are left out",
        when=post(
            WIDGETS,
            widget() | {"metadata": {"name": "one", "labels": None, "annotations": {"a": None}, "finalizers": None}},
        ),
        look=("metadata",),
        then=answered(
            201,
            metadata={
                "annotations": {"a": ""},
                "creationTimestamp": "$time",
                "generation": 1,
                "name": "one",
                "namespace": "$ns",
                "resourceVersion": "$version",
                "uid": "$uid",
            },
        ),
    ),
    Row(
        title="empty maps and lists in metadata are left out",
        when=post(
            WIDGETS,
            widget()
            | {"metadata": {"name": "one", "labels": {}, "annotations": {}, "finalizers": [], "ownerReferences": []}},
        ),
        look=("metadata",),
        then=answered(
            201,
            metadata={
                "creationTimestamp": "$time",
                "generation": 1,
                "name": "one",
                "namespace": "$ns",
                "resourceVersion": "$version",
                "uid": "$uid",
            },
        ),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_new_metadata(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
