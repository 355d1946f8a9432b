"""hack/overlay.sh, which `make deploy` and `make build-installer` render."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.programs.kustomize import DEFAULT, rendered

SCRIPT = Path(__file__).parents[2] / "hack/overlay.sh"


@pytest.mark.full
@pytest.mark.parametrize("image", ["", "registry.example:5000/team/manager:v9"])
def test_overlay_is_the_default_with_another_image(tmp_path: Path, image: str) -> None:
    subprocess.run([str(SCRIPT), str(tmp_path / "build/overlay"), image], check=True)  # noqa: S603  # our own script
    found, expected = rendered(tmp_path / "build/overlay"), rendered(DEFAULT)
    deployments = [one for one in expected if one["kind"] == "Deployment"]
    for deployment in deployments if image else ():
        deployment["spec"]["template"]["spec"]["containers"][0]["image"] = image
    assert found == expected
