from __future__ import annotations

import pytest

from upgrade_manager.toolkit.charts.addon_values import with_event_router, with_image_tag
from upgrade_manager.toolkit.run.errors import StepFailed

ROUTER = "rancher/harvester-eventrouter:v0.5.0"


@pytest.mark.parametrize(
    ("content", "changed"),
    [
        pytest.param("image: rancher/harvester-eventrouter:v0.3.3\n", f"image: {ROUTER}\n", id="plain"),
        pytest.param(
            'image: "registry.example.com:5000/rancher/harvester-eventrouter:v0.3.3" # mirror',
            f'image: "registry.example.com:5000/{ROUTER}" # mirror',
            id="registry-stays",
        ),
        pytest.param("image: rancher/other:v1\n", "image: rancher/other:v1\n", id="other-image"),
        pytest.param("", "", id="empty"),
    ],
)
def test_event_router_in_values(content: str, changed: str) -> None:
    assert with_event_router(content, ROUTER) == changed
    assert with_event_router(content, "") == content


@pytest.mark.parametrize(
    ("content", "changed"),
    [
        pytest.param("image:\n  tag: v1.7.1\n", "image:\n  tag: v1.8.0\n", id="plain"),
        pytest.param("image:\n  tag: v1.7.1", "image:\n  tag: v1.8.0", id="no-last-line-end"),
        pytest.param("image: {tag: 'v1.7.1'} # own\n", "image: {tag: 'v1.8.0'} # own\n", id="single-quotes"),
        pytest.param('image:\n    tag:   "v1.7.1"\n', 'image:\n    tag:   "v1.8.0"\n', id="double-quotes"),
        pytest.param("image:\r\n  tag: v1.7.1\r\nx: ä\r\n", "image:\r\n  tag: v1.8.0\r\nx: ä\r\n", id="line-ends"),
        pytest.param(
            "# ä😀\nother: {tag: v1.7.1}\nimage:\n  # tag: v1.7.1\n  tag: v1.7.1 # v1.7.1\nnote: |\n  tag: v1.7.1\n",
            "# ä😀\nother: {tag: v1.7.1}\nimage:\n  # tag: v1.7.1\n  tag: v1.8.0 # v1.7.1\nnote: |\n  tag: v1.7.1\n",
            id="elsewhere",
        ),
        pytest.param("image: {tag: 1.7}", "image: {tag: v1.8.0}", id="number"),
        pytest.param("image: {tag: v1.8.0}", "image: {tag: v1.8.0}", id="equal"),
        pytest.param("image: {tag: ''}", "image: {tag: ''}", id="empty-tag"),
        pytest.param("image: {tag: [v1]}", "image: {tag: [v1]}", id="list"),
        pytest.param("image: v1.7.1", "image: v1.7.1", id="no-mapping"),
        pytest.param("- image", "- image", id="no-values"),
        pytest.param("a: 1\n---\nimage: {tag: v1}", "a: 1\n---\nimage: {tag: v1}", id="documents"),
        pytest.param("image: {tag: v1", "image: {tag: v1", id="no-yaml"),
        pytest.param("\x00", "\x00", id="no-text"),
        pytest.param("", "", id="empty"),
    ],
)
def test_only_the_tag_is_replaced(content: str, changed: str) -> None:
    assert with_image_tag(content, "v1.8.0") == changed


@pytest.mark.parametrize(
    "content",
    [
        "image: {tag: &t v1.7.1}\nother: *t\n",
        "a: &t v1.7.1\nimage: {tag: *t}\n",
        "image: {tag: !own v1.7.1}\n",
        "image:\n  tag: >-\n    v1\nx: 1\n",
    ],
    ids=["anchor", "alias", "type", "folded"],
)
def test_tag_that_is_not_a_scalar_alone_is_refused(content: str) -> None:
    with pytest.raises(StepFailed, match=r"set it to v1\.8\.0"):
        with_image_tag(content, "v1.8.0")
