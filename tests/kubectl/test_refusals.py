"""Error messages for invalid input."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cluster.kubectl import Cluster, manifest
from tests.support.programs.polling import eventually

pytestmark = [pytest.mark.real_loop, pytest.mark.servers]

SHORT = 'Invalid value: "": spec.{field} in body should be at least 1 chars long'
NO_MATCH = 'Invalid value: "{}": spec.{{field}} in body should match '
TYPE = 'Invalid value: "string": spec.{field} in body must be of type %s: "string"'


TWO: dict[str, Any] = {"version": "v1", "imagePreloadOption": {"concurrency": "2"}}
PAUSE, REQUIRED = "nodeUpgradeOption.pauseNodes", "Required value: set spec.version to the name of a Version"


def with_option(**option: Any) -> dict[str, Any]:
    return {"version": "v1", "nodeUpgradeOption": option}


def pausing(*nodes: str) -> dict[str, Any]:
    return with_option(pauseNodes=[*nodes])


@pytest.mark.rule(
    "api: version, image and upgrade have at least one character",
    "api: concurrency is an integer",
    "api: pauseNodes is a set",
    "api: pauseNodes contains no empty string",
    "api: names and tags in the spec follow Kubernetes' patterns",
    "api: version or image is required",
)
@pytest.mark.parametrize(
    ("spec", "field", "problem"),
    [
        pytest.param({"version": ""}, "version", SHORT, id="an empty version"),
        pytest.param({"image": ""}, "image", SHORT, id="an empty image"),
        pytest.param({"version": "v1", "upgrade": ""}, "upgrade", SHORT, id="an empty tag"),
        pytest.param(pausing(""), f"{PAUSE}[0]", SHORT, id="an empty node name"),
        pytest.param({"version": "V1 8"}, "version", NO_MATCH.format("V1 8"), id="no name of a Version"),
        pytest.param({"image": "a/b/c"}, "image", NO_MATCH.format("a/b/c"), id="no name of an image"),
        pytest.param({"version": "v1", "upgrade": "a b"}, "upgrade", NO_MATCH.format("a b"), id="no tag"),
        pytest.param(pausing("Node 0"), f"{PAUSE}[0]", NO_MATCH.format("Node 0"), id="no name of a node"),
        pytest.param(pausing("a", "a"), f"{PAUSE}[1]", 'Duplicate value: "a"', id="a node twice"),
        pytest.param({"version": "v1", "force": "yes"}, "force", TYPE % "boolean", id="a string for a boolean"),
        pytest.param(TWO, "imagePreloadOption.concurrency", TYPE % "integer", id="a string for a number"),
        pytest.param(
            with_option(pauseBefore=["Drain", "Lunch"]),
            "nodeUpgradeOption.pauseBefore[1]",
            'Unsupported value: "Lunch": supported values: "Drain", "Reboot"',
            id="no step of a node",
        ),
        pytest.param(
            with_option(pauseBefore=["Drain", "Drain"]),
            "nodeUpgradeOption.pauseBefore[1]",
            'Duplicate value: "Drain"',
            id="a step twice",
        ),
        pytest.param(
            with_option(pauseAfter=0),
            "nodeUpgradeOption.pauseAfter",
            "Invalid value: 0: spec.{field} in body should be greater than or equal to 1",
            id="a pause after no node",
        ),
        pytest.param(
            with_option(onMigrationFailure="Kill"),
            "nodeUpgradeOption.onMigrationFailure",
            'Unsupported value: "Kill": supported values: "Wait", "Stop"',
            id="no way with VMs",
        ),
        pytest.param({"version": "v1", "paused": "yes"}, "paused", TYPE % "boolean", id="a string for a pause"),
        pytest.param({"force": True}, "version", REQUIRED, id="no version and no image"),
    ],
)
@pytest.mark.thin
async def test_plan_that_violates_its_schema_is_refused(
    cluster: Cluster, spec: dict[str, Any], field: str, problem: str
) -> None:
    message = await cluster.fail("create", "-f", "-", stdin=manifest(**spec))
    assert message.startswith('The UpgradePlan "demo" is invalid: ')
    assert f"spec.{field}: {problem.format(field=field)}" in message


async def test_all_violations_are_reported(cluster: Cluster) -> None:
    message = await cluster.fail("create", "-f", "-", stdin=manifest(version="", image=""))
    assert {line.partition(":")[0] for line in message.splitlines()[1:]} == {"* spec.version", "* spec.image"}
    message = await cluster.fail("create", "-f", "-", stdin=manifest(force="yes"))
    assert "some validation rules were not checked because the object was invalid" in message
    plan = manifest()
    del plan["spec"]
    assert "spec: Required value" in await cluster.fail("create", "-f", "-", stdin=plan)


@pytest.mark.rule(
    "api: version, image and upgrade are immutable: they cannot be changed, added or removed",
    "api: CEL rules of the schema enforce this without a webhook",
)
@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        pytest.param({"version": "v1"}, {"version": "v2"}, "version", id="another version"),
        pytest.param({"version": "v1", "image": "i"}, {"image": "i"}, "version", id="the version removed"),
        pytest.param({"image": "i"}, {"image": "i", "version": "v1"}, "version", id="a version added"),
        pytest.param({"image": "i"}, {"image": "j"}, "image", id="another image"),
        pytest.param({"version": "v1"}, {"version": "v1", "image": "i"}, "image", id="an image added"),
        pytest.param({"version": "v1", "upgrade": "t"}, {"version": "v1"}, "upgrade", id="the tag removed"),
    ],
)
@pytest.mark.thin
async def test_immutable_field_cannot_change(
    cluster: Cluster, before: dict[str, Any], after: dict[str, Any], field: str
) -> None:
    await cluster.succeed("apply", "-f", "-", stdin=manifest(**before))
    message = await cluster.fail("apply", "-f", "-", stdin=manifest(**after))
    assert message.startswith(f'The UpgradePlan "demo" is invalid: spec.{field}: Forbidden: spec.{field} is immutable')


@pytest.mark.rule("api: the spec has seven fields")
async def test_unknown_field_is_refused_or_a_warning(cluster: Cluster) -> None:
    plan = manifest(version="v1", pauseNode=["a"])

    async def refusal() -> str:
        outcome = await cluster.kubectl("apply", "-f", "-", stdin=plan)
        if not outcome.code:
            await cluster.succeed("delete", "up", "demo")
        return outcome.err if "(BadRequest)" in outcome.err else ""

    # kubectl validates by itself, and knows no field, until the API server publishes a definition created again.
    message = await eventually(refusal, seconds=30)
    assert 'strict decoding error: unknown field "spec.pauseNode"' in message
    outcome = await cluster.succeed("create", "--validate=warn", "-f", "-", stdin=plan)
    assert outcome.err == 'Warning: unknown field "spec.pauseNode"\n'
    assert (await cluster.succeed("get", "up", "demo", "-o", "jsonpath={.spec}")).json == {"version": "v1"}


@pytest.mark.rule("api: status fields of a newer version survive every write")
async def test_unknown_status_field_is_kept(cluster: Cluster) -> None:
    await cluster.plan()
    patch = '{"status":{"currentPhase":"Initializing","newer":{"a":1}}}'
    await cluster.succeed("patch", "up", "demo", "--subresource=status", "--type=merge", "-p", patch)
    kept = await cluster.succeed("get", "up", "demo", "-o", "jsonpath={.status.newer}")
    assert kept.json == {"a": 1}


async def test_invalid_label_and_unknown_kind_are_refused(cluster: Cluster) -> None:
    plan = manifest()
    plan["metadata"]["labels"] = {"a": 1}
    message = await cluster.fail("create", "-f", "-", "--validate=false", stdin=plan)
    assert "cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string" in message
    message = await cluster.fail("apply", "-f", "-", stdin=manifest() | {"kind": "UpgradePlam"})
    assert 'no matches for kind "UpgradePlam" in version "management.harvesterhci.io/v1beta1"' in message
