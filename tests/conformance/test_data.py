"""Secrets and ConfigMaps: what is encoded, what is counted, what never changes."""
# ruff: noqa: E501  # what the server says stays in one piece

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.api_calls import Row, answered, invalid, merge, play, post, put

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
        then=invalid("Secret", ("type", 'Invalid value: "other": field is immutable')),
    ),
    Row(
        title="the type of a Secret may be left out of a PUT",
        given=(post(SECRETS, _secret(type="a.io/b")),),
        when=put(SECRET, _secret(data={})),
        then=invalid("Secret", ("type", 'Invalid value: "Opaque": field is immutable')),
    ),
    Row(
        title="a frozen Secret keeps its data",
        given=FROZEN,
        when=merge(SECRET, {"data": {"x": "eQ=="}}),
        then=invalid("Secret", ("data", "Forbidden: field is immutable when `immutable` is set")),
    ),
    Row(
        title="a frozen Secret stays frozen",
        given=FROZEN,
        when=merge(SECRET, {"immutable": False}),
        then=invalid("Secret", ("immutable", "Forbidden: field is immutable when `immutable` is set")),
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
        then=invalid("ConfigMap", ("data", "Forbidden: field is immutable when `immutable` is set")),
    ),
    Row(
        title="a frozen ConfigMap keeps its binary data",
        given=FROZEN_MAP,
        when=merge(MAP, {"binaryData": {"x": "eQ=="}}),
        then=invalid("ConfigMap", ("binaryData", "Forbidden: field is immutable when `immutable` is set")),
    ),
    Row(
        title="a frozen ConfigMap stays frozen",
        given=FROZEN_MAP,
        when=merge(MAP, {"immutable": None}),
        then=invalid("ConfigMap", ("immutable", "Forbidden: field is immutable when `immutable` is set")),
    ),
    Row(
        title="a key with a slash is refused",
        when=post(SECRETS, _secret(data={"a/b": "Yg=="})),
        then=invalid(
            "Secret",
            (
                "data[a/b]",
                "Invalid value: \"a/b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
            ),
        ),
    ),
    Row(
        title="a key that is too long is refused",
        when=post(MAPS, _secret(data={"a" * 254: "b"})),
        then=invalid(
            "ConfigMap",
            (
                "data[aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]",
                'Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": must be no more than 253 characters',
            ),
        ),
    ),
    Row(
        title="two dots are no key",
        when=post(MAPS, _secret(data={"..": "b"})),
        then=invalid("ConfigMap", ("data[..]", "Invalid value: \"..\": must not be '..'")),
    ),
    Row(
        title="a key that is there twice is refused",
        when=post(MAPS, _secret(data={"a": "b"}, binaryData={"a": "Yg=="})),
        then=invalid("ConfigMap", ("data[a]", 'Invalid value: "a": duplicate of key present in binaryData')),
    ),
    Row(
        title="more than a megabyte is refused",
        when=post(MAPS, _secret(data={"a": "b" * 1048577})),
        then=invalid("ConfigMap", ("[]", "Too long: may not be more than 1048576 bytes")),
    ),
    Row(
        title="more than a megabyte in a Secret is refused",
        when=post(SECRETS, _secret(stringData={"a": "b" * 1048577})),
        then=invalid("Secret", ("data", "Too long: may not be more than 1048576 bytes")),
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
        then=invalid("Secret", ("data[tls.crt]", "Required value"), ("data[tls.key]", "Required value")),
    ),
    Row(
        title="a basic-auth Secret needs a key",
        when=post(SECRETS, _secret(type="kubernetes.io/basic-auth")),
        then=invalid("Secret", ("data[password]", "Required value"), ("data[username]", "Required value")),
    ),
    Row(
        title="a pull Secret needs its key",
        when=post(SECRETS, _secret(type="kubernetes.io/dockerconfigjson")),
        then=invalid("Secret", ("data[.dockerconfigjson]", "Required value")),
    ),
    Row(
        title="a token Secret needs its account",
        when=post(SECRETS, _secret(type="kubernetes.io/service-account-token")),
        then=invalid("Secret", ("metadata.annotations[kubernetes.io/service-account.name]", "Required value")),
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
