from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.support.server.tokens import encoded, part, token_of
from upgrade_manager.runtime.bearer_token import LEEWAY, MAX_TOKEN, bearer_token, may_be_valid

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECONDS = NOW.timestamp()
HEADER, CLAIMS, SIGNATURE = part({"alg": "RS256"}), part({"sub": "s"}), encoded(b"x")


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        (" bearer   abc ", "abc"),
        ("Bearer " + "x" * MAX_TOKEN, "x" * MAX_TOKEN),
        ("Bearer " + "x" * (MAX_TOKEN + 1), ""),
        ("Basic abc", ""),
        ("Bearer", ""),
        ("", ""),
    ],
)
def test_bearer_token_of_a_header(header: str, token: str) -> None:
    assert bearer_token(header) == token


@pytest.mark.parametrize(
    ("token", "is_valid"),
    [
        pytest.param(token_of("s"), True, id="without an expiry, as in a Secret"),
        pytest.param(token_of("s", exp=SECONDS + 3600), True, id="valid"),
        pytest.param(token_of("s", exp=SECONDS - LEEWAY + 1), True, id="expired within the leeway"),
        pytest.param(token_of("s", exp=SECONDS - LEEWAY), False, id="expired"),
        pytest.param(token_of("s", exp=10**400), True, id="expiry is larger than a float"),
        pytest.param(token_of("s", exp="soon"), False, id="expiry is a text"),
        pytest.param(token_of("s", exp=float("nan")), False, id="expiry is not a number"),
        pytest.param(token_of("s", exp=[]), False, id="expiry is a list"),
        pytest.param("", False, id="empty"),
        pytest.param("opaque", False, id="opaque"),
        pytest.param(f"{HEADER}.{CLAIMS}", False, id="two parts"),
        pytest.param(f"{HEADER}.{CLAIMS}.", False, id="empty signature"),
        pytest.param(f"{HEADER}.{CLAIMS}.{SIGNATURE}.{SIGNATURE}", False, id="four parts"),
        pytest.param(f"{HEADER}.{CLAIMS}.x+/x", False, id="base64, not base64url"),
        pytest.param(f"{HEADER}.{CLAIMS}.x\udce4", False, id="not ASCII"),
        pytest.param(f"{HEADER}.{CLAIMS}=.{SIGNATURE}", False, id="padded"),
        pytest.param(f"{part([])}.{CLAIMS}.{SIGNATURE}", False, id="header is a list"),
        pytest.param(f"{HEADER}.{part('s')}.{SIGNATURE}", False, id="claims are a text"),
        pytest.param(f"x.{CLAIMS}.{SIGNATURE}", False, id="header is one character"),
        pytest.param(f"{HEADER}.{encoded(b'{')}.{SIGNATURE}", False, id="claims are no JSON"),
        pytest.param(f"{HEADER}.{encoded(bytes([255]) * 3)}.{SIGNATURE}", False, id="claims are no text"),
        pytest.param(f"{HEADER}.{encoded(b'[' * 12000)}.{SIGNATURE}", False, id="deeply nested"),
        pytest.param(f"{HEADER}.{encoded(b'1' * 12000)}.{SIGNATURE}", False, id="a long number"),
    ],
)
def test_only_an_unexpired_json_web_token_may_be_valid(token: str, *, is_valid: bool) -> None:
    assert may_be_valid(token, now=NOW) is is_valid
