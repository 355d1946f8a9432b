"""The examples of docs/gitops, and the verdicts of other tools on plans, by the libraries of these tools."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.control_plane.assets import PLAN_HEALTH, find_tool
from tests.support.managers.plans_by_state import plans_by_state
from upgrade_manager.kube import objects
from upgrade_manager.kube.objects import Object

FOLDER = Path(__file__).parents[2] / "docs/gitops"
HEALTH = (FOLDER / "argocd-health.lua").read_text(encoding="utf-8")
ARGO, FLUX = (list(yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text("utf-8"))) for name in ("argocd", "flux"))
CUSTOMIZATION = "resource.customizations.health.management.harvesterhci.io_UpgradePlan"
CEL = FLUX[0]["spec"]["healthCheckExprs"][0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The verdicts on one plan."""

    state: str
    #: Of kstatus, and of its fork in Flux.
    kstatus: str = "InProgress"
    #: Of healthCheckExprs.
    cel: str = "InProgress"
    #: Of wrangler.
    transitioning: bool = True
    error: bool = False
    argo: str = "Progressing"


def failed(state: str) -> Row:
    return Row(state=state, kstatus="Failed", cel="Failed", transitioning=False, error=True, argo="Degraded")


#: Ready is Succeeded alone, failed are Failed and refused plans alone. wrangler takes each Stalled for an error.
TABLE = {
    "new": Row(state="Pending"),
    "queued": Row(state="Queued"),
    "running": Row(state="Running"),
    "stalled": Row(state="Stalled: PodUnschedulable", error=True),
    "paused": Row(state="Paused", argo="Suspended"),
    "cleaning up": Row(state="CleaningUp"),
    "removal refused": Row(state="Stalled: CleanupRefused", error=True),
    "succeeded": Row(state="Succeeded", kstatus="Current", cel="Current", transitioning=False, argo="Healthy"),
    # wrangler reads display alone.
    "spec that no manager has seen": Row(state="Succeeded", transitioning=False),
    "failed": failed("Failed: NodeUpgradeFailed"),
    "spec changed after the end": failed("Failed: NodeUpgradeFailed"),
    "refused": failed("Failed: Refused"),
    "attempt paused": Row(state="Paused", argo="Suspended"),
    "attempt queued": Row(state="Queued"),
    "attempt refused": failed("Failed: Refused"),
    "deleting": Row(state="Deleting", kstatus="Terminating"),
    "deleting after a failure": Row(state="Deleting", kstatus="Terminating", error=True),
}


def judge(plans: list[Object]) -> list[dict[str, Any]]:
    """Return the verdicts of the libraries on these plans."""
    given = json.dumps({"objects": plans, "lua": HEALTH, "cel": CEL})
    program = find_tool(PLAN_HEALTH, os.environ)
    found = subprocess.run(  # noqa: S603  # the project's own program
        [program], input=given, capture_output=True, text=True, check=False, timeout=60
    )
    assert found.returncode == 0, found.stderr
    verdicts: list[dict[str, Any]] = json.loads(found.stdout)
    return verdicts


@pytest.mark.assets
@pytest.mark.rule("api: other tools judge a plan as ready only if it succeeded, and as failed only if it failed")
async def test_other_tools_judge_each_state_rightly() -> None:
    plans = await plans_by_state()
    verdicts = dict(zip(plans, judge(list(plans.values())), strict=True))
    found = {
        state: Row(
            state=objects.status(plans[state])["display"]["state"],
            kstatus=verdict["kstatus"],
            cel=verdict["fluxCEL"],
            transitioning=verdict["wrangler"].get("transitioning", False),
            error=verdict["wrangler"].get("error", False),
            argo=verdict["argo"],
        )
        for state, verdict in verdicts.items()
    }
    assert found == TABLE
    for state, verdict in verdicts.items():
        assert verdict["flux"] == verdict["kstatus"]
        assert verdict["wrangler"]["state"] == TABLE[state].state.lower()
        assert verdict["message"]


def test_script_of_the_config_map_is_the_file() -> None:
    assert ARGO[0]["data"] == {CUSTOMIZATION: HEALTH}


def test_table_of_the_page_has_every_state() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]+ \| `?(\w+)[^|]*\| (\w+) \| ([^|]+) \| (\w+) \|$", page, re.MULTILINE)
    shown = {word: (kstatus, argo) for word, kstatus, _, argo in rows}
    assert shown == {
        row.state.partition(":")[0]: (row.kstatus, row.argo)
        for name, row in TABLE.items()
        if name not in {"deleting after a failure", "spec that no manager has seen"}
    }
