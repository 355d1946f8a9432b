"""The checks of a node, in the order of its report; the command survey makes them at the same time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from upgrade_manager.api.survey import SurveyFinding, SurveyReport
from upgrade_manager.kube.errors import KubeError
from upgrade_manager.toolkit.run.errors import StepFailed
from upgrade_manager.toolkit.survey.boot_arguments import boot_arguments
from upgrade_manager.toolkit.survey.boot_slot import boot_slot
from upgrade_manager.toolkit.survey.finding import Check
from upgrade_manager.toolkit.survey.mapper_device import mapper_device
from upgrade_manager.toolkit.survey.oem_files import oem_files
from upgrade_manager.toolkit.survey.room import persistent_partition, state_partition
from upgrade_manager.toolkit.survey.time_sync import time_sync

if TYPE_CHECKING:
    from upgrade_manager.toolkit.run.context import ToolkitContext

CHECKS = (
    Check(id="boot-slot", find=boot_slot),
    Check(id="state-partition", find=state_partition),
    Check(id="persistent-partition", find=persistent_partition),
    Check(id="boot-arguments", find=boot_arguments),
    Check(id="mapper-device", find=mapper_device),
    Check(id="oem-files", find=oem_files),
    Check(id="time-sync", find=time_sync),
)
#: Seconds for a check; a node has 30 s for the whole command.
_TIMEOUT = 20.0

_log = structlog.get_logger(__name__)


async def survey(context: ToolkitContext) -> SurveyReport:
    """Make all checks. A check that is not possible is a finding: nothing is known of the node then."""
    found = await asyncio.gather(*(_findings(check, context) for check in CHECKS))
    return SurveyReport(node=context.node, findings=tuple(one for findings in found for one in findings))


async def _findings(check: Check, context: ToolkitContext) -> list[SurveyFinding]:
    try:
        async with asyncio.timeout(_TIMEOUT):
            messages = await check.find(context)
    except TimeoutError:
        messages = [_impossible(check, f"it takes more than {_TIMEOUT:g} s")]
    except (StepFailed, KubeError, OSError) as error:
        messages = [_impossible(check, str(error))]
    for message in messages:
        _log.warning("node survey finding", check=check.id, message=message)
    return [SurveyFinding(check=check.id, message=message) for message in messages]


def _impossible(check: Check, cause: str) -> str:
    return f"The check {check.id} is not possible: {cause.rstrip('.')}. Look for the cause on the node."
