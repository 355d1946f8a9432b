from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.support.toolkit.cluster_upgrade import services_world
from upgrade_manager.kube.errors import NotFound, Transient
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import DEPLOYMENTS
from upgrade_manager.toolkit.charts import chart_files
from upgrade_manager.toolkit.charts.chart_files import IndexEntry, parse_index
from upgrade_manager.toolkit.charts.chart_repository import upgrade_repository
from upgrade_manager.toolkit.run.errors import BadArchive, StepFailed


async def test_index_of_the_previous_release_is_not_used(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        charts = world.context().charts
        old = "the index of Harvester's chart repository has Harvester's chart 1.7.1 instead of 1.8.0"
        with pytest.raises(Transient, match=old):
            await charts.version("kubeovn-operator-crd")
        await upgrade_repository(world.context())
        assert await charts.version("kubeovn-operator-crd") == "1.15.4"
        with pytest.raises(StepFailed, match=r"has no chart other$"):
            await charts.version("other")
        assert (await charts.archive("harvester")).startswith(b"\x1f\x8b")
        with pytest.raises(NotFound):
            await charts.archive("harvester-crd")


async def test_large_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with services_world(tmp_path) as world:
        await upgrade_repository(world.context())
        monkeypatch.setattr(chart_files, "_MAX_CHART", 10)
        text = "harvester-1.8.0.tgz of Harvester's chart repository exceeds 10 bytes"
        with pytest.raises(BadArchive, match=text):
            await world.context().charts.archive("harvester")


async def test_absent_repository_is_named(tmp_path: Path) -> None:
    async with services_world(tmp_path) as world:
        containers = [{"name": "httpd", "image": "rancher/harvester-cluster-repo:"}]
        patch = MergePatch({"spec": {"template": {"spec": {"containers": containers}}}})
        await world.client.patch(DEPLOYMENTS, "harvester-cluster-repo", patch, namespace="cattle-system")
        with pytest.raises(Transient, match=r"has no chart of Harvester instead of 1\.8\.0$"):
            await world.context().charts.version("harvester")


@pytest.mark.parametrize(
    ("listed", "entry"),
    [
        pytest.param(
            [{"version": "1.0", "urls": ["a-1.0.tgz"]}], IndexEntry(version="1.0", file="a-1.0.tgz"), id="one"
        ),
        pytest.param(
            [{"version": "2.0", "urls": ["http://x/charts/a-2.0.tgz"]}, {"version": "1.0", "urls": ["a"]}],
            IndexEntry(version="2.0", file="a-2.0.tgz"),
            id="newest-first",
        ),
        pytest.param([], None, id="none"),
        pytest.param({}, None, id="no-list"),
        pytest.param(["a"], None, id="no-entry"),
        pytest.param([{"version": 1, "urls": ["a"]}], None, id="no-version"),
        pytest.param([{"version": "1.0", "urls": []}], None, id="no-file"),
        pytest.param([{"version": "1.0", "urls": ["a/"]}], None, id="folder"),
        pytest.param([{"version": "1.0", "urls": ["a?b"]}], None, id="query"),
    ],
)
def test_entries_of_an_index(listed: object, entry: IndexEntry | None) -> None:
    found = parse_index(yaml.safe_dump({"entries": {"a": listed}}).encode())
    assert found == ({"a": entry} if entry is not None else {})


@pytest.mark.parametrize("body", [b"a: [", b"\xff\xfe\x00"], ids=["yaml", "text"])
def test_index_that_is_not_yaml_is_refused(body: bytes) -> None:
    with pytest.raises(BadArchive, match=r"is not YAML$"):
        parse_index(body)
