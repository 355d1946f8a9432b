"""Remedies for PodDisruptionBudgets."""

from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.facts.evictions import leftovers, ways_out

OWNER = {"kind": "VirtualMachineInstance", "name": "vm1", "uid": "u1"}
OLD = "kubevirt-migration-pdb-kubevirt-evacuation-x"


@pytest.mark.rule("blockers: a PodDisruptionBudget of an evacuation is to be deleted, whatever finder names it")
@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        pytest.param(OLD, f"Delete it: kubectl delete pdb -n ns {OLD}", id="of an evacuation"),
        pytest.param("kubevirt-disruption-budget-x", "Migrate the VM: virtctl migrate vm1 -n ns", id="of a VM"),
    ],
)
@pytest.mark.parametrize("is_stale", [True, False])
def test_remedy_for_a_budget_of_kubevirt(name: str, remedy: str, *, is_stale: bool) -> None:
    budget: dict[str, Any] = {"metadata": {"name": name, "namespace": "ns", "ownerReferences": [OWNER]}}
    assert [*map(str, ways_out(budget, is_stale=is_stale))] == [remedy]
    assert bool(leftovers([budget], {"u1"})) == remedy.startswith("Delete")
