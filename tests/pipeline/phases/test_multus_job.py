from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from hack.virtual_time import virtual_now
from upgrade_manager.api.timestamps import format_time
from upgrade_manager.kube.resources import JOBS
from upgrade_manager.pipeline.outcome import Waiting
from upgrade_manager.pipeline.phases import multus_job

if TYPE_CHECKING:
    from tests.support.cluster.harvester import Harvester

COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}], "completionTime": "2026-01-01T00:00:00Z"}
TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "helm", "image": "rancher/klipper-helm"}]}}


@pytest.mark.rule("workloads: after the last node RKE2 gets five minutes to upgrade its chart rke2-multus")
@pytest.mark.parametrize(
    ("seconds", "status", "waits", "warned"),
    [
        pytest.param(10, COMPLETE, True, False, id="RKE2 has not read its manifests"),
        pytest.param(30, COMPLETE, False, False, id="complete"),
        pytest.param(30, {}, True, False, id="running"),
        pytest.param(30, None, False, False, id="no such Job"),
        pytest.param(299, {}, True, False, id="running for long"),
        pytest.param(301, {}, False, True, id="running for too long"),
        pytest.param(None, {}, False, False, id="released long ago"),
    ],
)
async def test_wait_for_the_job_is_bounded(
    cluster: Harvester, seconds: float | None, status: dict[str, Any] | None, *, waits: bool, warned: bool
) -> None:
    if status is not None:
        metadata = {"name": multus_job.JOB, "namespace": "kube-system"}
        await cluster.put(JOBS, {"metadata": metadata, "spec": {"template": TEMPLATE}}, status=status)
    ctx = cluster.context(await cluster.plan())
    since = "" if seconds is None else format_time(virtual_now() - timedelta(seconds=seconds))
    found = await multus_job.wait(ctx, since=since)
    assert isinstance(found, Waiting) is waits
    assert [reason for reason, _ in cluster.recorder.recorded] == ["ChartJobNotDone"] * warned
