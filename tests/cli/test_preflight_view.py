"""The output of `upgrade-manager preflight`."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from upgrade_manager.cli.preflight_view import PreflightView
from webhook.check import Finding
from webhook.preflight.gate import Report
from webhook.preflight.row import Row

BIND = "kubectl create clusterrolebinding r:alice --clusterrole=r --user=alice"
PLAN = {"metadata": {"name": "demo"}, "spec": {"version": "v1.8.0"}}
VIEW = PreflightView(
    context="prod",
    server="https://10.0.0.1:6443",
    plan=PLAN,
    image="me/toolkit:v1.8.0",
    report=Report(
        rows=[
            Row(check="Harvester", outcome="passed"),
            Row(check="disk space", outcome="skipped", reason="You need get on nodes/proxy"),
            Row(check="nodes", outcome="failed", findings=[Finding(message="One."), Finding(message="Two.")]),
        ],
        running="v1.7.1",
        is_skipped=True,
        bind=BIND,
    ),
)
TABLE = f"""\
Context prod, server https://10.0.0.1:6443, runs v1.7.1, target v1.8.0

CHECK       RESULT   DETAILS
Harvester   passed
disk space  skipped  You need get on nodes/proxy
nodes       failed   One.
                     Two.

Toolkit image: me/toolkit:v1.8.0.
1 of 3 checks failed, 1 skipped.
The webhook skips all checks of this plan, because it has the annotation skip-webhook.

An administrator gives you the missing permissions:
{BIND}
"""


def test_table_ends_with_the_command_alone_on_its_line() -> None:
    assert VIEW.table() == TABLE


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
    assert view.table().startswith(first)


def test_document_has_the_same_facts() -> None:
    found = json.loads(VIEW.document())
    assert {key: found[key] for key in ("context", "server", "runningVersion", "target", "plan", "bindCommand")} == {
        "context": "prod",
        "server": "https://10.0.0.1:6443",
        "runningVersion": "v1.7.1",
        "target": "v1.8.0",
        "plan": "demo",
        "bindCommand": BIND,
    }
    assert (found["passed"], found["skippedByWebhook"], found["toolkitImage"]) == (False, True, "me/toolkit:v1.8.0")
    assert found["checks"][1] == {
        "name": "disk space",
        "outcome": "skipped",
        "findings": [],
        "reason": "You need get on nodes/proxy",
    }
