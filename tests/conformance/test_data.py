"""Secrets and ConfigMaps: what is encoded, what is counted, what never changes."""
# ruff: noqa: E501  # what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.exchange import (
    Row,
    answered,
    merge,
    play,
    post,
    put,
    refused,
)

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

# aiohttp warns where a body is so large that sending it might take a while.
pytestmark = [pytest.mark.servers, pytest.mark.filterwarnings("ignore:Sending a large body")]

SECRETS = "/api/v1/namespaces/$ns/secrets"
SECRET = f"{SECRETS}/one"
MAPS = "/api/v1/namespaces/$ns/configmaps"
MAP = f"{MAPS}/one"
ONE = (post(SECRETS, {"metadata": {"name": "one"}, "data": {"a": "Yg=="}}),)
FROZEN = (post(SECRETS, {"metadata": {"name": "one"}, "immutable": True, "data": {"a": "Yg=="}}),)
FROZEN_MAP = (
    post(MAPS, {"metadata": {"name": "one"}, "immutable": True, "data": {"a": "b"}, "binaryData": {"c": "ZA=="}}),
)


def _secret(**more: object) -> dict[str, object]:
    return {"metadata": {"name": "one"}} | more


ROWS = [
    Row(
        title="plain data of a Secret is encoded",
        when=post(SECRETS, _secret(data={"a": "Yg=="}, stringData={"a": "c", "d": "é"})),
        look=("data", "stringData", "type"),
        then=answered(201, data={"a": "Yw==", "d": "w6k="}, stringData="absent", type="Opaque"),
    ),
    Row(
        title="plain data is merged at an update",
        given=ONE,
        when=merge(SECRET, {"stringData": {"x": "y"}}),
        look=("data", "stringData"),
        then=answered(200, data={"a": "Yg==", "x": "eQ=="}, stringData="absent"),
    ),
    Row(
        title="the type of a Secret does not change",
        given=ONE,
        when=merge(SECRET, {"type": "other"}),
        then=refused(
            422,
            "Invalid",
            'Secret "one" is invalid: type: Invalid value: "other": field is immutable',
            {
                "name": "one",
                "kind": "Secret",
                "causes": [
                    {
                        "reason": "FieldValueInvalid",
                        "message": 'Invalid value: "other": field is immutable',
                        "field": "type",
                    }
                ],
            },
        ),
    ),
    Row(
        title="the type of a Secret may be left out of a PUT",
        given=(post(SECRETS, _secret(type="a.io/b")),),
        when=put(SECRET, _secret(data={})),
        then=refused(
            422,
            "Invalid",
            'Secret "one" is invalid: type: Invalid value: "Opaque": field is immutable',
            {
                "name": "one",
                "kind": "Secret",
                "causes": [
                    {
                        "reason": "FieldValueInvalid",
                        "message": 'Invalid value: "Opaque": field is immutable',
                        "field": "type",
                    }
                ],
            },
        ),
    ),
    Row(
        title="a frozen Secret keeps its data",
        given=FROZEN,
        when=merge(SECRET, {"data": {"x": "eQ=="}}),
        then=refused(
            422,
            "Invalid",
            'Secret "one" is invalid: data: Forbidden: field is immutable when `immutable` is set',
            {
                "name": "one",
                "kind": "Secret",
                "causes": [
                    {
                        "reason": "FieldValueForbidden",
                        "message": "Forbidden: field is immutable when `immutable` is set",
                        "field": "data",
                    }
                ],
            },
        ),
    ),
    Row(
        title="a frozen Secret stays frozen",
        given=FROZEN,
        when=merge(SECRET, {"immutable": False}),
        then=refused(
            422,
            "Invalid",
            'Secret "one" is invalid: immutable: Forbidden: field is immutable when `immutable` is set',
            {
                "name": "one",
                "kind": "Secret",
                "causes": [
                    {
                        "reason": "FieldValueForbidden",
                        "message": "Forbidden: field is immutable when `immutable` is set",
                        "field": "immutable",
                    }
                ],
            },
        ),
    ),
    Row(
        title="a frozen Secret takes labels",
        given=FROZEN,
        when=merge(SECRET, {"metadata": {"labels": {"a": "b"}}}),
        look=("metadata.labels",),
        then=answered(200, **{"metadata.labels": {"a": "b"}}),
    ),
    Row(
        title="a frozen ConfigMap keeps its data",
        given=FROZEN_MAP,
        when=merge(MAP, {"data": {"x": "y"}}),
        then=refused(
            422,
            "Invalid",
            'ConfigMap "one" is invalid: data: Forbidden: field is immutable when `immutable` is set',
            {
                "name": "one",
                "kind": "ConfigMap",
                "causes": [
                    {
                        "reason": "FieldValueForbidden",
                        "message": "Forbidden: field is immutable when `immutable` is set",
                        "field": "data",
                    }
                ],
            },
        ),
    ),
    Row(
        title="a frozen ConfigMap keeps its binary data",
        given=FROZEN_MAP,
        when=merge(MAP, {"binaryData": {"x": "eQ=="}}),
        then=refused(
            422,
            "Invalid",
            'ConfigMap "one" is invalid: binaryData: Forbidden: field is immutable when `immutable` is set',
            {
                "name": "one",
                "kind": "ConfigMap",
                "causes": [
                    {
                        "reason": "FieldValueForbidden",
                        "message": "Forbidden: field is immutable when `immutable` is set",
                        "field": "binaryData",
                    }
                ],
            },
        ),
    ),
    Row(
        title="a frozen ConfigMap stays frozen",
        given=FROZEN_MAP,
        when=merge(MAP, {"immutable": None}),
        then=refused(
            422,
            "Invalid",
            'ConfigMap "one" is invalid: immutable: Forbidden: field is immutable when `immutable` is set',
            {
                "name": "one",
                "kind": "ConfigMap",
                "causes": [
                    {
                        "reason": "FieldValueForbidden",
                        "message": "Forbidden: field is immutable when `immutable` is set",
                        "field": "immutable",
                    }
                ],
            },
        ),
    ),
    Row(
        title="a key with a slash is refused",
        when=post(SECRETS, _secret(data={"a/b": "Yg=="})),
        then=refused(
            422,
            "Invalid",
            "Secret \"one\" is invalid: data[a/b]: Invalid value: \"a/b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
            {
                "name": "one",
                "kind": "Secret",
                "causes": [
                    {
                        "reason": "FieldValueInvalid",
                        "message": "Invalid value: \"a/b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
                        "field": "data[a/b]",
                    }
                ],
            },
        ),
    ),
    Row(
        title="a key that is too long is refused",
        when=post(MAPS, _secret(data={"a" * 254: "b"})),
        then=refused(
            422,
            "Invalid",
            'ConfigMap "one" is invalid: data[aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]: Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": must be no more than 253 characters',
            {
                "name": "one",
                "kind": "ConfigMap",
                "causes": [
                    {
                        "reason": "FieldValueInvalid",
                        "message": 'Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": must be no more than 253 characters',
                        "field": "data[aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]",
                    }
                ],
            },
        ),
    ),
    Row(
        title="two dots are no key",
        when=post(MAPS, _secret(data={"..": "b"})),
        then=refused(
            422,
            "Invalid",
            'ConfigMap "one" is invalid: data[..]: Invalid value: "..": must not be \'..\'',
            {
                "name": "one",
                "kind": "ConfigMap",
                "causes": [
                    {
                        "reason": "FieldValueInvalid",
                        "message": "Invalid value: \"..\": must not be '..'",
                        "field": "data[..]",
                    }
                ],
            },
        ),
    ),
    Row(
        title="a key that is there twice is refused",
        when=post(MAPS, _secret(data={"a": "b"}, binaryData={"a": "Yg=="})),
        then=refused(
            422,
            "Invalid",
            'ConfigMap "one" is invalid: data[a]: Invalid value: "a": duplicate of key present in binaryData',
            {
                "name": "one",
                "kind": "ConfigMap",
                "causes": [
                    {
                        "reason": "FieldValueInvalid",
                        "message": 'Invalid value: "a": duplicate of key present in binaryData',
                        "field": "data[a]",
                    }
                ],
            },
        ),
    ),
    Row(
        title="more than a megabyte is refused",
        when=post(MAPS, _secret(data={"a": "b" * 1048577})),
        then=refused(
            422,
            "Invalid",
            'ConfigMap "one" is invalid: []: Too long: may not be more than 1048576 bytes',
            {
                "name": "one",
                "kind": "ConfigMap",
                "causes": [
                    {
                        "reason": "FieldValueTooLong",
                        "message": "Too long: may not be more than 1048576 bytes",
                        "field": "[]",
                    }
                ],
            },
        ),
    ),
    Row(
        title="more than a megabyte in a Secret is refused",
        when=post(SECRETS, _secret(stringData={"a": "b" * 1048577})),
        then=refused(
            422,
            "Invalid",
            'Secret "one" is invalid: data: Too long: may not be more than 1048576 bytes',
            {
                "name": "one",
                "kind": "Secret",
                "causes": [
                    {
                        "reason": "FieldValueTooLong",
                        "message": "Too long: may not be more than 1048576 bytes",
                        "field": "data",
                    }
                ],
            },
        ),
    ),
    Row(
        title="a megabyte is taken",
        when=post(SECRETS, _secret(stringData={"a": "b" * 1048576})),
        look=("type",),
        then=answered(201, type="Opaque"),
    ),
    Row(
        title="a TLS Secret needs its keys",
        when=post(SECRETS, _secret(type="kubernetes.io/tls")),
        then=refused(
            422,
            "Invalid",
            'Secret "one" is invalid: [data[tls.crt]: Required value, data[tls.key]: Required value]',
            {
                "name": "one",
                "kind": "Secret",
                "causes": [
                    {"reason": "FieldValueRequired", "message": "Required value", "field": "data[tls.crt]"},
                    {"reason": "FieldValueRequired", "message": "Required value", "field": "data[tls.key]"},
                ],
            },
        ),
    ),
    Row(
        title="a basic-auth Secret needs a key",
        when=post(SECRETS, _secret(type="kubernetes.io/basic-auth")),
        then=refused(
            422,
            "Invalid",
            'Secret "one" is invalid: [data[password]: Required value, data[username]: Required value]',
            {
                "name": "one",
                "kind": "Secret",
                "causes": [
                    {"reason": "FieldValueRequired", "message": "Required value", "field": "data[password]"},
                    {"reason": "FieldValueRequired", "message": "Required value", "field": "data[username]"},
                ],
            },
        ),
    ),
    Row(
        title="a pull Secret needs its key",
        when=post(SECRETS, _secret(type="kubernetes.io/dockerconfigjson")),
        then=refused(
            422,
            "Invalid",
            'Secret "one" is invalid: data[.dockerconfigjson]: Required value',
            {
                "name": "one",
                "kind": "Secret",
                "causes": [
                    {"reason": "FieldValueRequired", "message": "Required value", "field": "data[.dockerconfigjson]"}
                ],
            },
        ),
    ),
    Row(
        title="a token Secret needs its account",
        when=post(SECRETS, _secret(type="kubernetes.io/service-account-token")),
        then=refused(
            422,
            "Invalid",
            'Secret "one" is invalid: metadata.annotations[kubernetes.io/service-account.name]: Required value',
            {
                "name": "one",
                "kind": "Secret",
                "causes": [
                    {
                        "reason": "FieldValueRequired",
                        "message": "Required value",
                        "field": "metadata.annotations[kubernetes.io/service-account.name]",
                    }
                ],
            },
        ),
    ),
    Row(
        title="a value of null is empty",
        when=post(SECRETS, _secret(data={"a": None})),
        look=("data",),
        then=answered(201, data={"a": ""}),
    ),
    Row(
        title="a value of null in a ConfigMap is empty",
        when=post(MAPS, _secret(data={"a": None})),
        look=("data",),
        then=answered(201, data={"a": ""}),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_data(api: BareApi, row: Row) -> None:
    assert await play(api, row) == row.then
