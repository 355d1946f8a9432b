from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hack.cluster.chart_proxy import harvester_chart, new_cdi
from hack.host.iso import tar_of
from tests.support.toolkit.cluster_upgrade import services_world
from upgrade_manager.kube import objects
from upgrade_manager.kube.resources import CUSTOM_RESOURCE_DEFINITIONS
from upgrade_manager.toolkit.charts.cdi_crd import apply_definition, definition_in, definition_outdated, has
from upgrade_manager.toolkit.charts.chart_repository import upgrade_repository
from upgrade_manager.toolkit.run.errors import BadArchive

NAME = "cdis.cdi.kubevirt.io"


@pytest.mark.parametrize("exists", [True, False], ids=["outdated", "absent"])
async def test_definition_is_applied_once(tmp_path: Path, *, exists: bool) -> None:
    async with services_world(tmp_path) as world:
        context = world.context()
        await upgrade_repository(context)
        if not exists:
            await world.client.delete(CUSTOM_RESOURCE_DEFINITIONS, NAME)
        state = "differs from the release" if exists else "does not exist"
        assert await definition_outdated(context) == f"CustomResourceDefinition {NAME} {state}"
        await apply_definition(context)
        assert await definition_outdated(context) == ""
        found = await world.client.get(CUSTOM_RESOURCE_DEFINITIONS, NAME)
        assert objects.annotations_of(found) == {"controller-gen.kubebuilder.io/version": "v0.16.5"}
        assert bool(objects.labels(found)) == exists
        assert has(found["spec"], new_cdi()["spec"])


@pytest.mark.parametrize(
    ("found", "wanted", "equal"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        ({}, {"a": ""}, True),
        ({}, {"a": {}, "b": [], "c": False, "d": None, "e": 0}, True),
        ({}, {"a": {"b": "c"}}, False),
        ({"a": [{"b": 1, "c": 2}]}, {"a": [{"b": 1}]}, True),
        ({"a": [1, 2]}, {"a": [1]}, False),
        ({"a": True}, {"a": False}, False),
        (None, {"a": 1}, False),
    ],
)
def test_what_an_object_has(found: Any, wanted: Any, *, equal: bool) -> None:
    assert has(found, wanted) is equal


@pytest.mark.parametrize(
    "files",
    [
        {"harvester/Chart.yaml": b"name: harvester"},
        {"harvester/templates/cdi.yaml": b"metadata: {name: cdis.cdi.kubevirt.io}\nspec: {}"},
        {"harvester/crds/a.yaml": b"metadata: {name: a}\nspec: {}"},
        {"harvester/crds/a.yaml": b"# cdis.cdi.kubevirt.io\nmetadata: {name: a}\n---\ntext\n"},
    ],
    ids=["none", "template", "other", "mentioned"],
)
def test_chart_without_the_definition(files: dict[str, bytes]) -> None:
    assert definition_in(tar_of(files, mode="w:gz")) is None


@pytest.mark.parametrize(
    "archive",
    [b"", b"text", harvester_chart()[:-200], tar_of({"x/crds/a.yaml": b"cdis.cdi.kubevirt.io: ["}, mode="w:gz")],
    ids=["empty", "text", "truncated", "no-yaml"],
)
def test_damaged_chart_is_refused(archive: bytes) -> None:
    with pytest.raises(BadArchive, match=r"^Harvester's chart is not a chart: "):
        definition_in(archive)
