from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.runtime.redaction import REDACTED, redact

JWT = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlIn0.c2lnbmF0dXJl"


def shown(**fields: Any) -> dict[str, Any]:
    return dict(redact(None, "info", fields))


@pytest.mark.parametrize(
    "key", ["authorization", "Authorization", "token", "access_token", "tokenFile", "password", "api_key", "cookie"]
)
@pytest.mark.parametrize("value", ["secret", ["secret"], {"a": "secret"}, b"secret"])
def test_values_under_suspicious_keys_are_not_shown(key: str, value: Any) -> None:
    assert shown(**{key: value}) == {key: REDACTED}


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        (f"Authorization: Bearer {JWT}", f"Authorization: Bearer {REDACTED}"),
        ("bearer abc, and more", f"bearer {REDACTED}, and more"),
        ("Basic dXNlcjpwYXNz", f"Basic {REDACTED}"),
        (f"got {JWT} from the file", f"got {REDACTED} from the file"),
        ("-----BEGIN EC PRIVATE KEY-----\nabc\n-----END EC PRIVATE KEY-----\n", f"{REDACTED}\n"),
        ("-----BEGIN PRIVATE KEY-----\nabc cut", REDACTED),
        ("node-1 is upgraded, basic checks passed", "node-1 is upgraded, basic checks passed"),
    ],
)
def test_secrets_inside_of_texts_are_not_shown(text: str, safe: str) -> None:
    assert shown(event=text, inner={"list": [text]}) == {"event": safe, "inner": {"list": [safe]}}


def test_other_values_are_shown_as_they_are() -> None:
    fields = {"count": 3, "ratio": 0.5, "on": True, "token": None, "nodes": ["a", "b"], "tokens": 2}
    assert shown(**fields) == fields


def test_objects_become_texts_and_bytes_their_length() -> None:
    assert shown(error=ValueError(f"Bearer {JWT}"), body=b"123") == {"error": f"Bearer {REDACTED}", "body": "<3 bytes>"}


def test_what_lies_deep_is_not_shown() -> None:
    deep: Any = "bottom"
    for _ in range(20):
        deep = {"in": deep}
    assert "bottom" not in str(shown(deep=deep))
