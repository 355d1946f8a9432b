"""The check of the API server at start: what is retried, and what ends the manager."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from tests.support.server.kube_server import Reply, ScriptedTransport, failure, reset, success
from upgrade_manager.cli.api_server_check import RESPONSE_TIMEOUT, ApiServerCheck, StartError
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.errors import REFUSED, UNTRUSTED, Transient

REFUSAL = Transient("the API server at x:6443 cannot be reached", reason=REFUSED)


def check_of(transport: ScriptedTransport) -> ApiServerCheck:
    random = Random(1)
    return ApiServerCheck(Client(transport, user_agent="test", random=random), server="https://x:6443", random=random)


AWAY: dict[str, list[Reply]] = {
    "refused": [REFUSAL],
    "no response": [RESPONSE_TIMEOUT + 1, REFUSAL],
    "broken connections": [reset() for _ in range(20)],
    "500": [failure(500)],
    "503, the server starts": [failure(503, "ServiceUnavailable")],
    "429": [failure(429, "TooManyRequests")],
}


@pytest.mark.parametrize("replies", AWAY.values(), ids=AWAY.keys())
async def test_server_that_is_away_is_retried(replies: list[Reply], capsys: pytest.CaptureFixture[str]) -> None:
    assert not await check_of(ScriptedTransport(others=replies)).attempt()
    assert "API server not available; retrying" in capsys.readouterr().out


async def test_server_that_is_away_for_an_hour_is_awaited() -> None:
    end = asyncio.get_running_loop().time() + 3600

    def respond(_: object) -> Reply:
        return REFUSAL if asyncio.get_running_loop().time() < end else success({"items": []})

    transport = ScriptedTransport(respond)
    check = check_of(transport)
    async with asyncio.TaskGroup() as group, asyncio.timeout(3700):
        group.create_task(check.run())
        await check.passed()
    assert transport.times[-1] >= end
    assert len(transport.times) < 100


REJECTED: dict[str, tuple[Reply, str]] = {
    "no CRD": (failure(404, "NotFound"), "UpgradePlan CRD not found. Run kubectl apply -k deploy/crds"),
    "403": (failure(403, "Forbidden"), "403 Forbidden"),
    "401": (failure(401, "Unauthorized"), "401 Unauthorized"),
    "400": (failure(400, "BadRequest"), "Check the kubeconfig or service account"),
    "another CA": (Transient("certificate verify failed", reason=UNTRUSTED), "certificate verify failed"),
}


@pytest.mark.parametrize(("reply", "words"), REJECTED.values(), ids=REJECTED.keys())
async def test_rejected_configuration_ends_the_start_at_once(reply: Reply, words: str) -> None:
    transport = ScriptedTransport(others=[reply])
    with pytest.raises(StartError, match=r"^API server https://x:6443: .*") as caught:
        await check_of(transport).run()
    assert words in str(caught.value)
    assert len(transport.requests) == 1
