"""The output of crictl about a node's images and containers."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from upgrade_manager.release.image_lists import identities
from upgrade_manager.toolkit.host.host_programs import Call, Output
from upgrade_manager.toolkit.images.node_images import read_images
from upgrade_manager.toolkit.run.errors import StepFailed

OLD = "docker.io/rancher/old:v1"
DIGEST = f"docker.io/rancher/old@sha256:{'ab' * 32}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crictl:
    """A host whose crictl prints these texts."""

    images: str = '{"images": []}'
    containers: str = '{"containers": []}'

    async def run(self, call: Call) -> Output:
        return Output(status=0, stdout=self.images if "images" in call.argv else self.containers)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("no list", id="no JSON"),
        pytest.param("[]", id="a list"),
        pytest.param("null", id="null"),
        pytest.param("{}", id="without the member"),
    ],
)
async def test_output_of_another_form_is_an_error(text: str) -> None:
    with pytest.raises(StepFailed, match="the output of crictl images is not a list of images"):
        await read_images(Crictl(images=text))
    with pytest.raises(StepFailed, match="the output of crictl ps is not a list of containers"):
        await read_images(Crictl(containers=text))


async def test_entries_of_another_form_are_ignored() -> None:
    images = json.dumps({"images": [None, "x", {"id": "sha256:1", "repoTags": [OLD]}, {"id": "sha256:2"}]})
    found = await read_images(Crictl(images=images, containers='{"containers": null}'))
    image = found.find(OLD)
    assert image is not None
    assert (image.id, image.tags) == ("sha256:1", (OLD,))
    assert found.reason_to_keep(image, frozenset(identities(OLD))) == ""


@pytest.mark.parametrize(
    "container",
    [
        pytest.param({"image": {"image": OLD}}, id="by name"),
        pytest.param({"image": {"image": "sha256:1"}}, id="by id"),
        pytest.param({"image": {"image": DIGEST}}, id="by digest"),
        pytest.param({"image": None, "imageRef": "sha256:1"}, id="by imageRef"),
        pytest.param({"image": "x", "imageId": "sha256:1"}, id="by imageId"),
    ],
)
async def test_image_of_a_container_is_in_use(container: dict[str, object]) -> None:
    images = json.dumps({"images": [{"id": "sha256:1", "repoTags": [OLD], "repoDigests": [DIGEST]}]})
    found = await read_images(Crictl(images=images, containers=json.dumps({"containers": [container]})))
    image = found.find(OLD)
    assert image is not None
    assert found.reason_to_keep(image, frozenset(identities(OLD))) == "used by a container"
