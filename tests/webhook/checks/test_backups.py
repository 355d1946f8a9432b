from __future__ import annotations

from typing import Any

import pytest

from tests.support.cluster.cluster_reader import MemoryReader, assert_messages, find, named
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import SCHEDULE_VM_BACKUPS, VIRTUAL_MACHINE_BACKUPS
from webhook.checks.backups import CHECK
from webhook.cluster import NotInstalled

SOURCE = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "db"}
RUNNING = "VirtualMachineBackup default/nightly is in progress ({} %). Wait until it is ready, or delete it: kubectl "
ACTIVE = "ScheduleVMBackup default/nightly is not suspended. (1) Suspend it until the upgrade has ended: kubectl patch "
SUSPENDING = "ScheduleVMBackup default/nightly is being suspended. "


def backup(status: Any) -> Object:
    return named("nightly", "default", spec={"source": SOURCE, "type": "snapshot"}, status=status)


def schedule(status: Any, *, suspend: Any = True) -> Object:
    spec = {"cron": "0 2 * * *", "retain": 8, "maxFailure": 4, "vmbackup": {"source": SOURCE}}
    return named("nightly", "default", spec=spec | {"suspend": suspend}, status=status)


@pytest.mark.rule("admission: backups must not be in progress, and their schedules must be suspended")
@pytest.mark.parametrize(
    ("backups", "expected"),
    [
        pytest.param([], [], id="none"),
        pytest.param([backup({"readyToUse": True})], [], id="ready"),
        pytest.param([backup({"readyToUse": False, "error": {"message": "disk full"}})], [], id="failed"),
        pytest.param([backup({"readyToUse": False, "progress": 40})], [RUNNING.format(40)], id="in progress"),
        pytest.param([backup({})], [RUNNING.format(0)], id="no field"),
        pytest.param([backup(None)], [RUNNING.format(0)], id="null status"),
        pytest.param([named("nightly", "default")], [RUNNING.format(0)], id="no status"),
        pytest.param([backup({"error": None})], [RUNNING.format(0)], id="null error"),
        pytest.param([backup({"readyToUse": "true", "error": "x", "progress": "9"})], [RUNNING.format(0)], id="types"),
    ],
)
async def test_backups(backups: list[Object], expected: list[str]) -> None:
    assert_messages(await find(CHECK, MemoryReader({VIRTUAL_MACHINE_BACKUPS: backups})), expected)


@pytest.mark.rule("admission: backups must not be in progress, and their schedules must be suspended")
@pytest.mark.parametrize(
    ("schedules", "expected"),
    [
        pytest.param([schedule({"suspended": True})], [], id="suspended"),
        pytest.param([schedule({"suspended": True}, suspend=False)], [], id="still suspended"),
        pytest.param([schedule({"suspended": False}, suspend=False)], [ACTIVE], id="active"),
        pytest.param([schedule({}, suspend=False)], [ACTIVE], id="no field"),
        pytest.param([named("nightly", "default")], [ACTIVE], id="no spec and status"),
        pytest.param([schedule({"suspended": False})], [SUSPENDING], id="being suspended"),
        pytest.param([schedule(None)], [SUSPENDING], id="null status"),
        pytest.param([schedule({"suspended": "true"}, suspend="true")], [ACTIVE], id="wrong types"),
    ],
)
async def test_schedules(schedules: list[Object], expected: list[str]) -> None:
    assert_messages(await find(CHECK, MemoryReader({SCHEDULE_VM_BACKUPS: schedules})), expected)


async def test_missing_kind_does_not_hide_the_other_one() -> None:
    reader = MemoryReader({VIRTUAL_MACHINE_BACKUPS: [backup({})]}, missing=[SCHEDULE_VM_BACKUPS])
    assert_messages(await find(CHECK, reader), [RUNNING.format(0)])
    reader = MemoryReader({VIRTUAL_MACHINE_BACKUPS: [backup({"readyToUse": True})]}, missing=[SCHEDULE_VM_BACKUPS])
    with pytest.raises(NotInstalled, match=SCHEDULE_VM_BACKUPS.name):
        await find(CHECK, reader)
