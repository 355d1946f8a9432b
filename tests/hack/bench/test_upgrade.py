from __future__ import annotations

import pytest

from hack import scenario as scenarios
from hack.bench.in_process import upgraded
from hack.bench.upgrade import Translation, UnfaithfulReplay, replay, replayed
from tests.support.server.apiserver import make_server


@pytest.mark.full
async def test_upgrade_is_replayed_on_a_cluster_like_it_only() -> None:
    async with upgraded(scenarios.load("three-nodes"), scale=0.0) as upgrade:
        pass
    await replayed(upgrade)
    with pytest.raises(UnfaithfulReplay, match=r"only \d+ of \d+ responses"):
        await replay(make_server(), upgrade.recorder.exchanges, Translation())
