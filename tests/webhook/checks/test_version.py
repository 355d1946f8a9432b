from __future__ import annotations

from typing import Any

import pytest

from tests.support.cluster.cluster_reader import MemoryReader, assert_messages, find, named
from tests.support.managers.toolkit_config import TOOLKIT
from upgrade_manager.api.keys import ANNOTATION_UNFINISHED_UPGRADE
from upgrade_manager.kube.resources import NODES, PROVISIONING_CLUSTERS, SETTINGS, VERSIONS
from upgrade_manager.release.unfinished import UnfinishedUpgrade
from webhook.check import Outcome, Subject
from webhook.checks.version import CHECK
from webhook.runner import run_checks

CHECKED: dict[str, Any] = {"spec": {"isoURL": "https://x/a.iso", "isoChecksum": "ab" * 64}}
READER = MemoryReader(
    {VERSIONS: [named("v1.8.0", "harvester-system", **CHECKED), named("v2.0.0", "default", **CHECKED)]}
)


@pytest.mark.rule("admission: a plan without a version and an image is denied, and one whose Version does not exist")
@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"version": "v1.8.0"}, [], id="exists"),
        pytest.param({"image": "iso"}, [], id="image only"),
        pytest.param({"image": "iso", "version": "v9"}, [], id="image and an unknown version"),
        pytest.param({}, ["Required. Set it to the name of a Version, or set spec.image"], id="neither"),
        pytest.param({"version": None}, ["Required. "], id="null"),
        pytest.param({"version": 18}, ["Required. "], id="a number"),
        pytest.param({"version": "v9"}, ["Version harvester-system/v9 does not exist. "], id="unknown"),
        pytest.param({"version": "v2.0.0"}, ["v2.0.0 does not exist. "], id="in another namespace"),
        pytest.param({"version": "a,b!=c"}, ["Version harvester-system/a,b!=c does not exist. "], id="no name"),
    ],
)
async def test_version(spec: dict[str, Any], expected: list[str]) -> None:
    assert_messages(await find(CHECK, READER, **spec), expected)


async def test_invalid_name_is_not_sent_as_a_selector() -> None:
    reader = MemoryReader({})
    await find(CHECK, reader, version="v9,metadata.name!=v9")
    assert reader.listings == []


UNFINISHED = UnfinishedUpgrade(previous="v1.7.1", release="v1.8.0", os="Harvester v1.8.0")
UNKNOWN_BEGIN = UnfinishedUpgrade(previous="v1.6.1", release="v1.8.0", os="Harvester v1.8.0")
REFUSAL = (
    "The upgrade from v1.7.1 to v1.8.0 has begun, and n2 does not run v1.8.0 yet. Until then only v1.8.0 or a patch of "
    "it is accepted, not v1.9.0. Set it to that release"
)


@pytest.mark.rule("nodes: while nodes are behind, only the release that was begun or a patch of it is accepted")
@pytest.mark.parametrize(
    ("version", "os", "expected"),
    [
        pytest.param("v1.9.0", "Harvester v1.7.1", [REFUSAL], id="another release"),
        pytest.param("v1.8.1", "Harvester v1.7.1", [], id="a patch"),
        pytest.param("v1.9.0", "Harvester v1.8.0", [], id="no node behind"),
    ],
)
async def test_release_that_was_begun_is_finished_first(version: str, os: str, expected: list[str]) -> None:
    cluster = named("local", "fleet-local")
    cluster["metadata"]["annotations"] = {ANNOTATION_UNFINISHED_UPGRADE: UNFINISHED.annotation()}
    found = {"n1": "Harvester v1.8.0", "n2": os}
    nodes = [named(name, status={"nodeInfo": {"osImage": image}}) for name, image in found.items()]
    versions = [named(version, "harvester-system", **CHECKED)]
    reader = MemoryReader({VERSIONS: versions, NODES: nodes, PROVISIONING_CLUSTERS: [cluster]})
    assert_messages(await find(CHECK, reader, version=version), expected)


@pytest.mark.rule("admission: a Version without isoChecksum is an admission warning")
@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"isoURL": "https://x/a.iso"}, id="absent"),
        pytest.param({"isoURL": "https://x/a.iso", "isoChecksum": ""}, id="empty"),
        pytest.param({"isoURL": "https://x/a.iso", "isoChecksum": 5}, id="a number"),
    ],
)
async def test_version_without_a_checksum_is_a_warning(spec: dict[str, Any]) -> None:
    reader = MemoryReader({VERSIONS: [named("v1.8.0", "harvester-system", spec=spec)]})
    subject = Subject.of({"spec": {"version": "v1.8.0"}}, cluster=reader, toolkit=TOOLKIT)
    [result] = await run_checks([CHECK], subject)
    assert (result.outcome, result.findings) == (Outcome.WARNING, ())
    [warning] = result.warnings
    assert warning.startswith("Version harvester-system/v1.8.0 lacks spec.isoChecksum, so nothing shows that ")


async def test_version_without_a_url_is_a_warning() -> None:
    reader = MemoryReader({VERSIONS: [named("v1.8.0", "harvester-system", spec={"isoChecksum": "ab" * 64})]})
    subject = Subject.of({"spec": {"version": "v1.8.0"}}, cluster=reader, toolkit=TOOLKIT)
    [result] = await run_checks([CHECK], subject)
    text = "Version harvester-system/v1.8.0 lacks spec.isoURL. Set it to the URL of the ISO"
    assert (result.outcome, result.warnings) == (Outcome.WARNING, (text,))


@pytest.mark.rule("admission: a plan for a release whose steps from the running one are not known is denied")
@pytest.mark.parametrize(
    ("running", "spec", "expected"),
    [
        pytest.param("v1.7.1", {}, [], id="known"),
        pytest.param(
            "v1.6.1", {}, ["The upgrade from v1.6.1 to v1.8.0 is not allowed: the steps between"], id="unknown"
        ),
        pytest.param("v1.6.1", {"force": True}, [], id="forced"),
        pytest.param("v1.6.1", {"image": "iso"}, [], id="an image, whose release is unknown"),
        pytest.param("", {}, [], id="no running version"),
    ],
)
async def test_unknown_pair(running: str, spec: dict[str, Any], expected: list[str]) -> None:
    setting = {"metadata": {"name": "server-version"}, "value": running}
    reader = MemoryReader({VERSIONS: [named("v1.8.0", "harvester-system", **CHECKED)], SETTINGS: [setting]})
    assert_messages(await find(CHECK, reader, version="v1.8.0", **spec), expected)


async def test_pair_begins_at_the_release_that_nodes_still_run() -> None:
    setting = {"metadata": {"name": "server-version"}, "value": "v1.8.0"}
    objects = {
        VERSIONS: [named("v1.8.1", "harvester-system", **CHECKED)],
        SETTINGS: [setting],
        PROVISIONING_CLUSTERS: [
            named("local", "fleet-local", annotations={ANNOTATION_UNFINISHED_UPGRADE: UNKNOWN_BEGIN.annotation()})
        ],
        NODES: [named("n1", status={"nodeInfo": {"osImage": "Harvester v1.6.1"}})],
    }
    [message] = await find(CHECK, MemoryReader(objects), version="v1.8.1")
    assert message.startswith("The upgrade from v1.6.1 to v1.8.1 is not allowed: ")
