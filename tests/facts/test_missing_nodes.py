"""The reasons for which the cache of managed nodes lacks a node: one text for the node's own wait, gate and webhook."""

from __future__ import annotations

from tests.support.cluster.cluster_reader import named
from upgrade_manager.facts.missing_nodes import UNCACHED, WITHOUT_NODE, unlabelled, without_node


def test_node_that_the_cache_lacks_is_named_without_a_remedy() -> None:
    """The cache shows it by itself; a blocker that lasts has the remedy."""
    assert str(UNCACHED) == "its Node is not in the cache yet"
    assert [*map(str, UNCACHED.ways_out)] == [
        "Restart the manager: kubectl -n harvester-system rollout restart deploy/harvester-upgrade-manager"
    ]
    assert str(WITHOUT_NODE) == "its Node does not exist. Start the node"


def test_deleted_machine_is_not_to_be_deleted_again() -> None:
    machine = named("m-n1", "fleet-local")
    assert str(without_node(machine)) == (
        "its Node does not exist, but Machine fleet-local/m-n1 does. Start the node, or delete the Machine"
    )
    machine["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["f"])
    deleted = without_node(machine)
    assert deleted.why.endswith("does: it is being deleted, and its finalizer f holds it")
    assert not any("kubectl delete" in str(way) for way in deleted.ways_out)


def test_label_is_named_with_its_command() -> None:
    assert str(unlabelled("n1")) == (
        "it lacks the label harvesterhci.io/managed=true. "
        "Add it: kubectl label --overwrite node n1 harvesterhci.io/managed=true"
    )
