from __future__ import annotations

import pytest

from upgrade_manager.resources.toolkit import ToolkitImage


@pytest.mark.parametrize(
    ("tag", "image"),
    [
        pytest.param("v1.7.0", "registry:5000/toolkit:v1.7.0", id="a release's tag is taken as it is"),
        pytest.param("v1.7.0+dev", "registry:5000/toolkit:v1.7.0-dev", id="a tag cannot have a plus"),
    ],
)
def test_containers_name_repository_and_tag(tag: str, image: str) -> None:
    assert str(ToolkitImage(repository="registry:5000/toolkit", tag=tag)) == image
