from __future__ import annotations

import copy
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from upgrade_manager.api.spec import UpgradePlanSpec

SPEC: dict[str, Any] = {
    "version": "v1.8.0",
    "image": "images/iso",
    "upgrade": "v1.8.1",
    "force": True,
    "imagePreloadOption": {"concurrency": -1},
    "nodeUpgradeOption": {"pauseNodes": ["node1", "node2"]},
    "restoreVM": True,
}
#: Prints the top-level modules that reading a plan imports.
LISTING = """
import sys
import upgrade_manager.api.spec, upgrade_manager.api.status, upgrade_manager.release.version
print(*{name.partition(".")[0] for name in sys.modules})
"""

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
paths = st.sampled_from(
    [("version",), ("nodeUpgradeOption",), ("nodeUpgradeOption", "pauseNodes"), ("imagePreloadOption", "concurrency")]
)


def test_spec_is_read_by_json_names() -> None:
    spec = UpgradePlanSpec.read(SPEC)
    assert (spec.version, spec.image, spec.upgrade) == ("v1.8.0", "images/iso", "v1.8.1")
    assert spec.force
    assert spec.restore_vm
    assert spec.image_preload_option.concurrency == -1
    assert spec.node_upgrade_option.pause_nodes == ["node1", "node2"]


@pytest.mark.parametrize("value", [None, [], "plan", 3, {}, {1: 2}, {"version": 3, "force": "yes"}], ids=repr)
def test_missing_and_invalid_fields_read_as_defaults(value: object) -> None:
    spec = UpgradePlanSpec.read(value)
    assert (spec.version, spec.image, spec.upgrade) == ("", "", "")
    assert not spec.force
    assert not spec.restore_vm
    assert spec.image_preload_option.concurrency == 0
    assert spec.node_upgrade_option.pause_nodes == []
    spec = UpgradePlanSpec.read({"nodeUpgradeOption": {"pauseNodes": ["node1", None, 3, "node2"]}})
    assert spec.node_upgrade_option.pause_nodes == ["node1", "node2"]


@given(paths, json_values)
def test_reading_never_fails(path: tuple[str, ...], value: object) -> None:
    raw = copy.deepcopy(SPEC)
    parent = raw
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    assert UpgradePlanSpec.read(raw).image == "images/iso"
    assert isinstance(UpgradePlanSpec.read(value), UpgradePlanSpec)


def test_model_is_immutable_and_read_unchanged() -> None:
    spec = UpgradePlanSpec.read(SPEC)
    assert UpgradePlanSpec.read(spec) is spec
    with pytest.raises(ValidationError):
        spec.version = "v2"  # type: ignore[misc]


def test_api_package_imports_no_client_library() -> None:
    command = [sys.executable, "-c", LISTING]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)  # noqa: S603  # our own
    loaded = set(done.stdout.split())
    assert "pydantic" in loaded
    assert not {"aiohttp", "kubernetes_asyncio", "yaml", "structlog", "asyncio", "cryptography"} & loaded
