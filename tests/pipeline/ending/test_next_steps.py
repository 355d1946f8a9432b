"""The next steps of a failed plan, copied from a screen of 80 columns into a shell."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.test_remedies import SHELLS, in_shell, printed, status_at_80
from tests.support.cluster.served import served
from tests.support.managers.displayed import MANIFEST
from upgrade_manager.api.keys import ANNOTATION_MIN_CERTS_DAYS
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import UPGRADE_PLANS
from upgrade_manager.pipeline.ending import failure
from upgrade_manager.pipeline.outcome import Failed

if TYPE_CHECKING:
    from tests.support.cluster.harvester import Harvester
    from upgrade_manager.kube.objects import Object

pytestmark = pytest.mark.real_loop

LOG = "kubectl logs -n harvester-system job/demo-node-upgrade-pre-drain-node-2"
#: Characters that shells, and the echo of some, interpret.
QUOTED = 'it\'s "$HOME" \\n `id`'


FULL = Failed(cause="Node node-2: pre-drain failed 3 times: no space left", log=LOG)


async def copied(tmp_path: Path, cluster: Harvester, shell: str, failed: Failed) -> tuple[list[str], Object, Object]:
    """Return the commands of a failed plan, the plan that the last one changed or created, and the failed one."""
    raw = await cluster.plan("demo", spec=objects.spec(MANIFEST))
    annotated = MergePatch({"metadata": {"annotations": {ANNOTATION_MIN_CERTS_DAYS: QUOTED}}})
    ctx = cluster.context(await cluster.client.patch(UPGRADE_PLANS, "demo", annotated))
    await failure.record(ctx, failed)
    async with served(tmp_path) as api_server:
        await api_server.client.create(UPGRADE_PLANS, MANIFEST)
        await api_server.set(currentPhase="Failed", nextSteps=ctx.status["nextSteps"])
        shown, listed = await status_at_80(api_server), await printed(api_server, "remedies")
        commands = [line for line in listed.out.splitlines() if line and not line.startswith("#")]
        assert [command for command in commands if command not in shown.out.splitlines()] == []
        ran = await in_shell(api_server, shell, commands[-1])
        assert (ran.code, ran.err) == (0, "")
        plans = (await api_server.client.list(UPGRADE_PLANS)).items
    return commands, plans[-1], raw


@pytest.mark.full
@pytest.mark.rule("status: a command stands alone on its line, and is neither cut nor wrapped")
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
async def test_copied_line_requests_the_next_attempt(tmp_path: Path, cluster: Harvester, shell: str) -> None:
    commands, plan, _ = await copied(tmp_path, cluster, shell, FULL)
    assert commands[:-1] == ["upgrade-manager retry demo", LOG]
    assert (objects.name(plan), objects.spec(plan)["attempt"]) == ("demo", 2)


@pytest.mark.full
@pytest.mark.rule("status: a command stands alone on its line, and is neither cut nor wrapped")
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
async def test_copied_line_creates_the_next_plan(tmp_path: Path, cluster: Harvester, shell: str) -> None:
    commands, following, raw = await copied(tmp_path, cluster, shell, replace(FULL, is_final=True))
    assert commands[:-1] == [LOG]
    assert objects.name(following) == "demo-2"
    assert objects.spec(following) == objects.spec(raw)
    assert objects.annotations_of(following) == {ANNOTATION_MIN_CERTS_DAYS: QUOTED}
