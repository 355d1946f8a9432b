"""GitOps tools that apply their manifest again after a user has changed the plan with `retry` or `pause`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.kubectl.test_attempt_refusals import FAILED, RAISED, patch_status
from tests.support.cluster.kubectl import Cluster, manifest

pytestmark = [pytest.mark.real_loop, pytest.mark.assets]
#: Flux, Fleet and Argo CD with ServerSideApply=true.
SERVER_SIDE = ("apply", "--server-side", "--force-conflicts", "--field-manager=gitops")
#: Argo CD as installed.
CLIENT_SIDE = ("apply",)
#: Argo CD with Replace=true.
REPLACE = ("replace",)


@pytest.mark.rule("control: spec.attempt is raised by one while the plan is Failed; every other change is one refusal")
@pytest.mark.parametrize(
    ("tool", "changed", "again", "refusal", "after"),
    [
        pytest.param(SERVER_SIDE, {"attempt": 2}, {}, "", {"attempt": 2}, id="server-side, an attempt not in Git"),
        pytest.param(CLIENT_SIDE, {"attempt": 2}, {}, "", {"attempt": 2}, id="client-side, an attempt not in Git"),
        pytest.param(REPLACE, {"attempt": 2}, {}, RAISED, {"attempt": 2}, id="replace, an attempt not in Git"),
        pytest.param(
            SERVER_SIDE, {"attempt": 2}, {"attempt": 1}, RAISED, {"attempt": 2}, id="server-side, a lower attempt"
        ),
        pytest.param(
            CLIENT_SIDE, {"attempt": 2}, {"attempt": 1}, RAISED, {"attempt": 2}, id="client-side, a lower attempt"
        ),
        pytest.param(SERVER_SIDE, {"paused": True}, {}, "", {"paused": True}, id="server-side, a pause not in Git"),
        pytest.param(CLIENT_SIDE, {"paused": True}, {}, "", {"paused": True}, id="client-side, a pause not in Git"),
        pytest.param(
            SERVER_SIDE, {"paused": True}, {"paused": False}, "", {"paused": False}, id="server-side, no pause in Git"
        ),
        pytest.param(REPLACE, {"paused": True}, {}, "", {}, id="replace, a pause not in Git"),
    ],
)
async def test_tool_that_applies_its_manifest_again(
    cluster: Cluster,
    tool: tuple[str, ...],
    changed: dict[str, Any],
    again: dict[str, Any],
    refusal: str,
    after: dict[str, Any],
) -> None:
    create = ("create", "--save-config") if tool == REPLACE else tool
    await cluster.succeed(*create, "-f", "-", stdin=manifest(version="v1"))
    await patch_status(cluster, FAILED)
    await cluster.succeed("patch", "up", "demo", "--type=merge", "-p", json.dumps({"spec": changed}))
    command = (*tool, "-f", "-")
    if refusal:
        said = await cluster.fail(*command, stdin=manifest(version="v1", **again))
        assert refusal in said
        assert len(said.strip().splitlines()) == 1
    else:
        await cluster.succeed(*command, stdin=manifest(version="v1", **again))
    found = json.loads((await cluster.succeed("get", "up", "demo", "-o", "json")).out)["spec"]
    assert {key: found[key] for key in ("attempt", "paused") if key in found} == after
