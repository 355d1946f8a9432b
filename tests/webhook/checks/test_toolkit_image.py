from __future__ import annotations

from typing import Any

import pytest

from tests.support.cluster.cluster_reader import MemoryReader
from upgrade_manager.api.image_name import ImageName
from upgrade_manager.api.keys import ANNOTATION_TOOLKIT_IMAGE, ANNOTATION_TOOLKIT_KIND
from upgrade_manager.api.toolkit_image import ToolkitConfig
from webhook.check import CheckResult, Outcome, Subject
from webhook.checks.toolkit_image import CHECK
from webhook.runner import run_checks

DIGEST = "sha256:" + "a" * 64
IMAGE, KIND = ANNOTATION_TOOLKIT_IMAGE, ANNOTATION_TOOLKIT_KIND
PINNED = ToolkitConfig(version="0.1.0", image=ImageName(repository="me/mirror", digest=DIGEST))
DEFAULTS = ToolkitConfig(version="0.1.0")


async def check(spec: dict[str, Any], annotations: dict[str, str], config: ToolkitConfig) -> CheckResult:
    plan = {"metadata": {"annotations": annotations}, "spec": spec}
    [result] = await run_checks([CHECK], Subject.of(plan, cluster=MemoryReader({}), toolkit=config))
    return result


@pytest.mark.rule(
    "admission: a toolkit image that the manager's flags do not allow is denied, with the annotation as field",
    "workloads: a repository outside the prefixes is refused; by default both that are in use are allowed",
)
@pytest.mark.parametrize(
    ("annotations", "fields"),
    [
        pytest.param({IMAGE: "evil/toolkit"}, [IMAGE], id="outside the prefixes"),
        pytest.param({IMAGE: "me/mirror:v1", KIND: "mine"}, [IMAGE, KIND], id="both invalid"),
        pytest.param({KIND: "own"}, [KIND], id="kind own without an image"),
    ],
)
async def test_refused_image_is_denied(annotations: dict[str, str], fields: list[str]) -> None:
    result = await check({"version": "v1.8.0"}, annotations, PINNED)
    assert result.outcome is Outcome.FAILED
    assert [one.field for one in result.findings] == [f"metadata.annotations[{field}]" for field in fields]


@pytest.mark.rule(
    "workloads: a guess is an admission warning, and named where the image cannot be pulled",
    "workloads: a digest that is dropped and a tag that is ignored or can move are reported",
)
@pytest.mark.parametrize(
    ("spec", "annotations", "config", "warning"),
    [
        pytest.param({"image": "iso"}, {}, DEFAULTS, "tag 0.1.0 is a guess", id="a guess"),
        pytest.param({"version": "v1", "upgrade": "fix"}, {}, PINNED, "spec.upgrade fix has no effect", id="a digest"),
        pytest.param({"version": "v1"}, {IMAGE: "me/mirror"}, PINNED, "does not apply to me/mirror", id="no digest"),
    ],
)
async def test_guess_and_ignored_parts_are_warnings(
    spec: dict[str, Any], annotations: dict[str, str], config: ToolkitConfig, warning: str
) -> None:
    result = await check(spec, annotations, config)
    assert (result.outcome, result.findings) == (Outcome.WARNING, ())
    assert [warning in one for one in result.warnings] == [True]


async def test_configured_image_passes() -> None:
    result = await check({"version": "v1.8.0"}, {}, DEFAULTS)
    assert (result.outcome, result.findings, result.warnings) == (Outcome.PASSED, (), ())
