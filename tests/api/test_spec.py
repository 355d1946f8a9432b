from __future__ import annotations

from upgrade_manager.api.spec import UpgradePlanSpec


def test_a_spec_is_read_by_its_names_on_the_wire() -> None:
    spec = UpgradePlanSpec.read(
        {
            "version": "v1.8.0",
            "image": "images/iso",
            "upgrade": "v1.8.1",
            "force": True,
            "imagePreloadOption": {"concurrency": -1},
            "nodeUpgradeOption": {"pauseNodes": ["node1", "node2"]},
            "restoreVM": True,
        }
    )
    assert (spec.version, spec.image, spec.upgrade) == ("v1.8.0", "images/iso", "v1.8.1")
    assert spec.force
    assert spec.restore_vm
    assert spec.image_preload_option.concurrency == -1
    assert spec.node_upgrade_option.pause_nodes == ["node1", "node2"]
    assert spec.image_reference == ("images", "iso")


def test_everything_has_a_default() -> None:
    spec = UpgradePlanSpec.read({})
    assert (spec.version, spec.image, spec.upgrade) == ("", "", "")
    assert not spec.force
    assert not spec.restore_vm
    assert spec.image_preload_option.concurrency == 0
    assert spec.node_upgrade_option.pause_nodes == []
    assert spec.image_reference is None


def test_one_odd_name_does_not_hide_the_rest_of_the_pause_list() -> None:
    spec = UpgradePlanSpec.read({"nodeUpgradeOption": {"pauseNodes": ["node1", None, 3, "node2"]}})
    assert spec.node_upgrade_option.pause_nodes == ["node1", "node2"]
