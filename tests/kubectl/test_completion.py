"""kubectl's own completion of `kubectl upgradeplan`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.kubectl.test_status import kubeconfig_of, run
from tests.support.cluster.kubectl import installed
from tests.support.programs.programs import install

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.cluster.kubectl import Cluster

pytestmark = [pytest.mark.real_loop]
#: A busy machine needs more than the seconds for which a user waits.
LONG_TIMEOUT = "from upgrade_manager.cli import completion; completion.TIMEOUT = 30"


async def test_kubectl_completes_the_plugin(cluster: Cluster, tmp_path: Path) -> None:
    await cluster.plan()
    for name in ("kubectl-upgradeplan", "kubectl_complete-upgradeplan"):
        install(name, tmp_path, before=LONG_TIMEOUT)
    admin = await kubeconfig_of(cluster, tmp_path)
    for words, found in ((["rep"], ["report"]), (["status", ""], ["demo"]), (["status", "--context", "b"], ["bob"])):
        done = await run(str(installed()), "__complete", "upgradeplan", *words, kubeconfig=admin, path=str(tmp_path))
        assert (done.code, done.lines) == (0, [*found, ":4"])
