from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager
from random import Random
from typing import Any

import pytest

from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import Forbidden
from upgrade_manager.kube.transport import Request, Response, Stream
from webhook.checks.nodes import CHECK
from webhook.preflight.permission import Permissions, bind_commands

ROLE = "harvester-upgrade-manager-preflight"


class Reviews:
    """An API server that says who the user is, or does not."""

    def __init__(self, status: int, body: object) -> None:
        self._response = Response(status=status, body=json.dumps(body).encode())

    async def send(self, request: Request) -> Response:
        assert request.path == "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        return self._response

    def open(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        raise AssertionError(request.path)


@pytest.mark.rule("admission: preflight names a missing permission, its ClusterRole and the command")
@pytest.mark.parametrize(
    ("status", "user", "name", "shown"),
    [
        pytest.param(201, "alice", f"{ROLE}:alice", "alice", id="a user"),
        pytest.param(201, "oidc/o'brien", f"'{ROLE}:oidc-o'\"'\"'brien'", "'oidc/o'\"'\"'brien'", id="quoted"),
        pytest.param(404, "alice", f"{ROLE}:USER", "USER", id="before Kubernetes 1.28"),
        pytest.param(201, "", f"{ROLE}:USER", "USER", id="no name"),
    ],
)
async def test_command_names_the_user(status: int, user: str, name: str, shown: str) -> None:
    body: dict[str, Any] = {"status": {"userInfo": {"username": user}}}
    client = Client(Reviews(status, body), user_agent="preflight", random=Random(1))
    command = f"kubectl create clusterrolebinding {name} --clusterrole={ROLE} --user={shown}"
    assert await bind_commands(client, ROLE) == (command,)
    assert await bind_commands(client) == ()


@pytest.mark.parametrize(
    ("details", "message", "missing"),
    [
        pytest.param(
            {"kind": "nodes"}, f"You need list on nodes: bind ClusterRole {ROLE} to yourself", ["nodes"], id="core"
        ),
        pytest.param(
            {"group": "longhorn.io", "kind": "volumes"},
            f"You need list on volumes.longhorn.io: bind ClusterRole {ROLE} to yourself",
            ["volumes.longhorn.io"],
            id="a group",
        ),
        pytest.param({"kind": "secrets"}, "You need list on secrets in fleet-local, which hold", [], id="Secrets"),
        pytest.param({}, "check 'nodes' cannot be made: 403. Bind ClusterRole", [], id="no details"),
    ],
)
def test_refusal_names_the_permission(details: dict[str, str], message: str, missing: list[str]) -> None:
    permissions, error = Permissions(), Forbidden("403", details=details)
    assert permissions.message(CHECK, error).startswith(message)
    assert list(permissions.missing) == missing
