"""`upgrade-manager report` with a user's rights."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.kubectl.test_status import READ_EVENTS, kubeconfig_of, run
from tests.support.cluster.kubectl import ROLES
from tests.support.programs.polling import eventually
from tests.support.server.accounts import grant

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.cluster.kubectl import Cluster

NODES = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}

pytestmark = [pytest.mark.real_loop]


@pytest.mark.rule("report: the viewer role suffices; what it may not read is named in the page")
@pytest.mark.servers
async def test_viewer_may_write_a_report(cluster: Cluster, tmp_path: Path) -> None:
    await cluster.plan(status={"currentPhase": "NodeUpgrading"})
    config = await kubeconfig_of(cluster, tmp_path)
    roles = yaml.safe_load_all(ROLES.read_text())
    (viewer,) = [role for role in roles if role["metadata"]["name"].endswith("-viewer")]
    command = [sys.executable, "-m", "upgrade_manager", "report", "--context=bob", "-o", "-"]
    refused = await run(*command, kubeconfig=config)
    assert (refused.code, refused.out, refused.err.count("\n")) == (1, "", 1)

    async def is_written() -> bool:
        written = await run(*command, kubeconfig=config)
        named = [what in written.out and what in written.err for what in ("Events and the", "Versions of nodes")]
        return written.code == 0 and "Running</span>" in written.out and named == [not may_read_others] * 2

    may_read_others = False
    await grant(cluster.wire, "bob", *viewer["rules"])
    await eventually(is_written, seconds=30)
    may_read_others = True
    await grant(cluster.wire, "bob", NODES, name="nodes")
    await grant(cluster.wire, "bob", READ_EVENTS, name="events", namespace="default")
    await eventually(is_written, seconds=30)
