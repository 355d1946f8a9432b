from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upgrade_manager.api.image_reference import ImageReference


@pytest.mark.rule(
    "api: an image without namespace is in harvester-system",
    "api: image may include a namespace",
)
@pytest.mark.parametrize(
    ("text", "namespace", "name"),
    [
        pytest.param("iso", "harvester-system", "iso", id="a bare name"),
        pytest.param("harvester-v1.8.0", "harvester-system", "harvester-v1.8.0", id="a name with dots"),
        pytest.param("images/iso", "images", "iso", id="another namespace"),
    ],
)
def test_a_reference_names_an_image(text: str, namespace: str, name: str) -> None:
    reference = ImageReference.parse(text)
    assert reference == (namespace, name)
    assert str(reference) == text


@pytest.mark.rule("api: isoImageID is the name of an image in harvester-system")
def test_the_usual_namespace_is_left_out_of_the_text() -> None:
    assert str(ImageReference.parse("harvester-system/iso")) == "iso"


@pytest.mark.parametrize(
    "text",
    ["", "/", "/iso", "images/", "a/b/c", "..", "images/..", "../nodes", "my.images/iso", "ISO", "a b", "a" * 254],
    ids=lambda text: text[:12] or "empty",
)
def test_what_cannot_name_an_image_is_no_reference(text: str) -> None:
    assert ImageReference.parse(text) is None


@given(st.text())
def test_a_reference_reads_back_from_its_text(text: str) -> None:
    reference = ImageReference.parse(text)
    assert reference is None or ImageReference.parse(str(reference)) == reference
