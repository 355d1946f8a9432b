"""The output of `upgrade-manager preflight`."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from upgrade_manager.api.remedy import Remedy
from upgrade_manager.cli.preflight_view import PreflightView
from webhook.check import Finding
from webhook.preflight.gate import Report
from webhook.preflight.row import Row

BIND = "kubectl create clusterrolebinding r:alice --clusterrole=r --user=alice"
PLAN = {"metadata": {"name": "demo"}, "spec": {"version": "v1.8.0"}}
UNCORDON = Remedy("Uncordon it", command="kubectl uncordon node-1")
FORGED = Remedy("Run it", command="rm -rf /\x1b[2K")
VIEW = PreflightView(
    context="prod",
    server="https://10.0.0.1:6443",
    plan=PLAN,
    image="me/toolkit:v1.8.0",
    on_migration_failure="Wait: a VM whose migration fails is left to you",
    report=Report(
        rows=[
            Row(check="Harvester", outcome="passed"),
            Row(check="disk space", outcome="unknown", reason="You need get on nodes/proxy"),
            Row(
                check="nodes",
                outcome="failed",
                findings=[
                    Finding(problem="Node node-1 is cordoned", remedies=(UNCORDON,)),
                    Finding(problem="Two. Do this", remedies=(FORGED,)),
                    Finding(problem="Three."),
                ],
            ),
        ],
        running="v1.7.1",
        is_skipped=True,
        bind=(BIND,),
    ),
)
TABLE = f"""\
Context prod, server https://10.0.0.1:6443, runs v1.7.1, target v1.8.0

CHECK       RESULT   DETAILS
Harvester   passed
disk space  unknown  You need get on nodes/proxy
nodes       failed   Node node-1 is cordoned
                     Two. Do this
                     Three.

REMEDIES
# nodes: Node node-1 is cordoned
# Uncordon it:
kubectl uncordon node-1
# nodes: Two. Do this
# Run it

Toolkit image: me/toolkit:v1.8.0.
Stuck VMs: Wait: a VM whose migration fails is left to you.
1 of 3 checks failed. Not made, so that the plan may still be refused: disk space.
The webhook skips all checks of this plan, because it has the annotation skip-webhook.

An administrator gives you the missing permissions:
{BIND}
"""
NARROW = """\
disk space  unknown  You need get on
                     nodes/proxy
nodes       failed   Node node-1 is
                     cordoned
                     Two. Do this
                     Three.

REMEDIES
# nodes: Node node-1 is cordoned
# Uncordon it:
kubectl uncordon node-1
"""


@pytest.mark.rule("admission: preflight shows each command alone on its line, which it never wraps")
def test_commands_stand_alone_below_the_table() -> None:
    assert VIEW.table(width=None) == TABLE
    assert VIEW.table(width=200) == TABLE


@pytest.mark.rule("admission: preflight shows each command alone on its line, which it never wraps")
def test_details_alone_are_wrapped() -> None:
    """A terminal of 10 columns is too narrow for the table, whose details keep 20."""
    assert NARROW in VIEW.table(width=41)
    assert NARROW in VIEW.table(width=10)


@pytest.mark.parametrize(
    ("view", "first"),
    [
        pytest.param(replace(VIEW, context=""), "Service account, server https://10.0.0.1:6443, runs", id="in a Pod"),
        pytest.param(replace(VIEW, plan={}), "Context prod, server https://10.0.0.1:6443, runs v1.7.1\n", id="no plan"),
        pytest.param(
            replace(VIEW, plan={"spec": {"image": "iso", "version": "v1"}}),
            "Context prod, server https://10.0.0.1:6443, runs v1.7.1, target image iso\n",
            id="image",
        ),
        pytest.param(
            replace(VIEW, report=replace(VIEW.report, running="")),
            "Context prod, server https://10.0.0.1:6443, running version unknown, target v1.8.0\n",
            id="unknown version",
        ),
    ],
)
def test_first_line_names_cluster_and_releases(view: PreflightView, first: str) -> None:
    assert view.table(width=None).startswith(first)


def test_document_has_the_same_facts() -> None:
    found = json.loads(VIEW.document())
    assert {key: found[key] for key in ("context", "server", "runningVersion", "target", "plan", "bindCommands")} == {
        "context": "prod",
        "server": "https://10.0.0.1:6443",
        "runningVersion": "v1.7.1",
        "target": "v1.8.0",
        "plan": "demo",
        "bindCommands": [BIND],
    }
    assert (found["passed"], found["skippedByWebhook"], found["toolkitImage"]) == (False, True, "me/toolkit:v1.8.0")
    assert found["onMigrationFailure"] == VIEW.on_migration_failure
    assert found["checks"][1] == {
        "name": "disk space",
        "outcome": "unknown",
        "findings": [],
        "reason": "You need get on nodes/proxy",
    }
    assert (found["notMade"], found["checks"][2]["findings"][:2]) == (
        ["disk space"],
        [
            {
                "field": "",
                "message": "Node node-1 is cordoned",
                "remedies": [{"text": "Uncordon it", "command": "kubectl uncordon node-1"}],
            },
            {"field": "", "message": "Two. Do this", "remedies": [{"text": "Run it"}]},
        ],
    )
