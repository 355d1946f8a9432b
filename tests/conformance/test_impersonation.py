"""`as` and its companions in a kubeconfig, on a server with sockets."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.apiserver.identity import User
from hack.cluster.gateway import Gateway
from hack.control_plane.certificates import Authority, server_context
from hack.control_plane.control_plane import ADMIN, ControlPlane
from hack.control_plane.kubeconfig import kubeconfig
from tests.support.server.apiserver import make_server
from upgrade_manager.kube.http_transport import HttpTransport
from upgrade_manager.kube.kubeconfig import load_config
from upgrade_manager.kube.transport import Request

JANE = {"as": "jane", "as-groups": ["dev", "system:authenticated"]}
SECRETS = Request(method="GET", path="/api/v1/secrets")
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


async def sent(text: str, user: dict[str, Any], folder: Path, request: Request) -> dict[str, Any]:
    """Send a request with a kubeconfig whose user has these fields, too."""
    content = yaml.safe_load(text)
    content["users"][0]["user"] |= user
    path = folder / "config"
    path.write_text(yaml.safe_dump(content))
    config = await load_config(environ={}, now=lambda: datetime.now(UTC), kubeconfig=str(path))
    async with HttpTransport(config) as transport:
        answer: dict[str, Any] = json.loads((await transport.send(request)).body)
    return answer


@pytest.mark.real_loop
async def test_embedded_server_authorizes_the_impersonated_user(tmp_path: Path) -> None:
    authority, server = Authority(now=datetime.now(UTC)), make_server()
    server.authenticator.register("root", User(name="root", groups=("system:masters",)))
    async with Gateway(server, tls=server_context(authority.server(), tmp_path)) as gateway:
        text = kubeconfig(server=gateway.url, authority=authority.certificate, token="root")  # noqa: S106  # a test's
        assert (await sent(text, {}, tmp_path, SECRETS))["kind"] == "SecretList"
        refusal = await sent(text, JANE, tmp_path, SECRETS)
    assert refusal["message"].startswith('secrets is forbidden: User "jane" cannot list')
    server.close()


@pytest.mark.assets
@pytest.mark.real_loop
async def test_real_server_gets_user_uid_groups_and_extra(controlled_plane: ControlPlane, tmp_path: Path) -> None:
    plane = controlled_plane
    text = kubeconfig(server=plane.url, authority=plane.certificate, token=ADMIN.token)
    assert (await sent(text, JANE, tmp_path, SECRETS))["message"].startswith('secrets is forbidden: User "jane"')
    review = {"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"}
    request = Request(
        method="POST",
        path=REVIEWS,
        headers={"content-type": "application/json"},
        body=json.dumps(review).encode(),
    )
    more = {"as-uid": "7", "as-user-extra": {"acme.com/team 1%": ["a", "b"], "Scopes": ["view"]}}
    answer = await sent(text, JANE | more, tmp_path, request)
    assert answer["status"]["userInfo"] == {
        "username": "jane",
        "uid": "7",
        "groups": ["dev", "system:authenticated"],
        "extra": {"acme.com/team 1%": ["a", "b"], "scopes": ["view"]},
    }
