from __future__ import annotations

import pytest

from tests.support.cluster.cluster_reader import MemoryReader, assert_messages, find, named
from upgrade_manager.kube.objects import Object
from upgrade_manager.kube.resources import VIRTUAL_MACHINE_IMAGES
from webhook.checks.image import CHECK

ANNOTATION = "harvesterhci.io/os-upgrade-image"
LACKS = 'VirtualMachineImage harvester-system/iso lacks the annotation harvesterhci.io/os-upgrade-image: "True"'


def image(annotations: object = None, namespace: str = "harvester-system") -> Object:
    return named("iso", namespace, annotations=annotations)


GOOD, OTHER = image({ANNOTATION: "True"}), image({ANNOTATION: "True"}, "default")
ABSENT = "VirtualMachineImage harvester-system/iso does not exist. (1) Import the ISO as image iso with backend cdi"


@pytest.mark.rule(
    "admission: an image must be well-formed, in harvester-system, existing and annotated as an upgrade image"
)
@pytest.mark.parametrize(
    ("named_image", "images", "expected"),
    [
        pytest.param("", [], [], id="no image"),
        pytest.param("iso", [GOOD], [], id="name"),
        pytest.param("harvester-system/iso", [GOOD], [], id="namespace and name"),
        pytest.param("a/b/c", [GOOD], ["'a/b/c' is not a valid VirtualMachineImage name. "], id="malformed"),
        pytest.param("default/iso", [OTHER], ["Import the ISO there"], id="other namespace"),
        pytest.param("iso", [OTHER], [ABSENT], id="absent"),
        pytest.param("iso", [image()], [LACKS], id="null annotations"),
        pytest.param("iso", [image({})], [LACKS], id="no annotation"),
        pytest.param("iso", [image({ANNOTATION: "true"})], [LACKS], id="small letter"),
        pytest.param("iso", [image({ANNOTATION: True})], [LACKS], id="a boolean"),
        pytest.param("iso", [image([])], [LACKS], id="a list"),
    ],
)
async def test_image(named_image: str, images: list[Object], expected: list[str]) -> None:
    reader = MemoryReader({VIRTUAL_MACHINE_IMAGES: images})
    assert_messages(await find(CHECK, reader, image=named_image), expected)
