from __future__ import annotations

import pytest

from tests.support.runtime_lease_server import LeaseLine, LeaseServer
from upgrade_manager.kube.errors import Transient
from upgrade_manager.kube.transport import Request
from upgrade_manager.runtime.fence import Fence


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_write_without_the_lease_never_leaves(method: str) -> None:
    line = LeaseLine(LeaseServer())
    with pytest.raises(Transient, match=f"{method} /x was held back"):
        await Fence(line, is_leader=lambda: False).send(Request(method=method, path="/x"))
    assert line.requests == []


@pytest.mark.parametrize(("method", "leads"), [("GET", False), ("HEAD", False), ("GET", True), ("PATCH", True)])
async def test_everything_else_passes(method: str, leads: bool) -> None:  # noqa: FBT001  # a row's column
    line = LeaseLine(LeaseServer())
    await Fence(line, is_leader=lambda: leads).send(Request(method=method, path="/x", body=b'{"metadata":{}}'))
    assert line.requests == [method]


def test_streams_only_read_and_pass() -> None:
    with pytest.raises(NotImplementedError):
        Fence(LeaseLine(LeaseServer()), is_leader=lambda: False).open(Request(method="GET", path="/x"))
