"""CONTRIBUTING's recipe of a check of the webhook, followed with one that refuses nodes in maintenance."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recipes.tree import Edit, Tree, changed_by, insert, named_in

CHECK = '''"""No node is in maintenance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube import objects
from webhook.check import Check, Finding
from webhook.listings import NODES

if TYPE_CHECKING:
    from webhook.check import Subject

_LABEL = "example.com/maintenance"


async def _find(subject: Subject) -> list[Finding]:
    nodes = await subject.cluster.list(NODES)
    names = [objects.name(node) for node in nodes if _LABEL in objects.strings(node, "metadata", "labels")]
    remedy = f"Wait until it is not: kubectl get nodes -l {_LABEL}"
    return [Finding(problem=f"Node {name} is in maintenance. {remedy}") for name in names]


CHECK = Check(name="maintenance", field="spec", find=_find)
'''
TEST = """
from __future__ import annotations

import pytest

from hack.simulation import Simulation
from tests.support.cluster.cluster_reader import MemoryReader, assert_messages, find, node
from tests.support.managers.toolkit_config import TOOLKIT
from tests.support.webhook.webhook import NO_CACHES
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import NODES
from webhook.admission import Admission
from webhook.checks.maintenance import CHECK
from webhook.cluster import LiveReader
from webhook.review import PLAN_KIND, AdmissionRequest

LABELS = {"example.com/maintenance": "fans"}


@pytest.mark.parametrize(("labels", "expected"), [({}, []), (LABELS, ["Node n1 is in maintenance. "])])
async def test_maintenance(labels: dict[str, str], expected: list[str]) -> None:
    assert_messages(await find(CHECK, MemoryReader({NODES: [node("n1", **labels)]})), expected)


@pytest.mark.parametrize("labels", [{}, LABELS])
async def test_plan_is_denied_while_a_node_is_in_maintenance(labels: dict[str, str]) -> None:
    async with Simulation(actors=False) as simulation:
        await simulation.client().patch(NODES, "node-1", MergePatch({"metadata": {"labels": labels}}))
        admission = Admission(LiveReader(simulation.client()), caches=NO_CACHES, toolkit=TOOLKIT)
        plan = {"metadata": {"name": "demo"}, "spec": {"version": "v1.8.0"}}
        request = AdmissionRequest(
            uid="1", operation="CREATE", kind=PLAN_KIND, subresource="", name="demo", new=plan, old=None
        )
        verdict = await admission.decide(request)
        assert [finding.message.partition(". ")[0] for finding in verdict.findings] == [
            "Node node-1 is in maintenance" for _ in labels
        ]
"""
EDITS = (
    Edit(file="webhook/checks/maintenance.py", new=CHECK),
    insert("webhook/catalogue.py", after="    machines,", new="    maintenance,"),
    insert("webhook/catalogue.py", after="    nodes.CHECK,", new="    maintenance.CHECK,"),
    Edit(file="tests/webhook/checks/test_maintenance.py", new=TEST),
    insert(
        "tests/webhook/checks/test_catalogue.py",
        after='    "nodes": (resources.NODES,),',
        new='    "maintenance": (resources.NODES,),',
    ),
    Edit(
        file="tests/support/webhook/admission_messages.py",
        old='        node("node-2", machine="m-0"),\n',
        new='        node("node-2", machine="m-0", **{"example.com/maintenance": "fans"}),\n',
    ),
)


def test_recipe_names_the_files_that_a_new_check_changes() -> None:
    assert named_in("a check of the webhook", NAME="maintenance") == changed_by(EDITS)


@pytest.mark.full
def test_check_by_the_recipe_denies_a_plan(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.apply(EDITS)
    tree.python("tests.support.webhook.admission_messages")
    tests = [f"tests/webhook/checks/test_{name}.py" for name in ("maintenance", "messages", "catalogue")]
    tree.test(*tests, "-k", "maintenance or listing or table or message")
    assert "maintenance | spec | Node node-2 is in maintenance. " in tree.read("tests/golden/admission.txt")
