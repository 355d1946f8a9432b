"""Who a request is made as, when its headers name somebody else."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hack.apiserver.identity import ADMIN, User
from hack.apiserver.impersonation import acting
from hack.apiserver.status import StatusError
from hack.apiserver.storage import Storage
from upgrade_manager.kube.transport import Request

BOB = User(name="bob", groups=("developers", "system:authenticated"))
STORE = Storage(now=lambda: datetime(2026, 1, 1, tzinfo=UTC))


def request(**headers: str) -> Request:
    return Request(method="GET", path="/", headers={name.replace("_", "-"): value for name, value in headers.items()})


def test_without_headers_one_is_oneself() -> None:
    assert acting(BOB, request(), STORE) is BOB


def test_the_administrator_may_act_as_somebody_else() -> None:
    asked = request(impersonate_user="eve", impersonate_group="a,b", impersonate_uid="7")
    assert acting(ADMIN, asked, STORE) == User(name="eve", uid="7", groups=("a", "b", "system:authenticated"))


def test_nobody_else_may() -> None:
    with pytest.raises(StatusError) as refusal:
        acting(BOB, request(impersonate_user="eve"), STORE)
    assert refusal.value.code == 403
    assert refusal.value.message == (
        'users "eve" is forbidden: User "bob" cannot impersonate resource "users" in API group "" at the cluster scope'
    )
