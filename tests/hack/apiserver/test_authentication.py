from __future__ import annotations

import pytest

from hack.apiserver.authentication import Authenticator
from hack.apiserver.identity import ADMIN, ANONYMOUS, User
from hack.apiserver.status import StatusError
from upgrade_manager.kube.transport import Request

BOB = User(name="bob", groups=("developers", "system:authenticated"))


@pytest.fixture
def authenticator() -> Authenticator:
    made = Authenticator()
    made.register("admin-token", ADMIN)
    made.register("bob-token", BOB)
    return made


def request(**headers: str) -> Request:
    return Request(method="GET", path="/", headers={name.replace("_", "-"): value for name, value in headers.items()})


def test_request_without_a_header_is_the_administrator(authenticator: Authenticator) -> None:
    assert authenticator.identify(request()) is ADMIN


def test_empty_header_is_anonymous(authenticator: Authenticator) -> None:
    assert authenticator.identify(request(authorization="")) is ANONYMOUS


def test_token_identifies_its_user(authenticator: Authenticator) -> None:
    assert authenticator.identify(request(authorization="Bearer bob-token")) is BOB
    assert authenticator.review("bob-token") is BOB


def test_unknown_token_is_refused(authenticator: Authenticator) -> None:
    with pytest.raises(StatusError) as refusal:
        authenticator.identify(request(authorization="Bearer nosuch"))
    assert (refusal.value.code, refusal.value.reason, refusal.value.message) == (401, "Unauthorized", "Unauthorized")
    assert authenticator.review("nosuch") is None
