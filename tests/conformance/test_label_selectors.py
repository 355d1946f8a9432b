"""Label selectors, and malformed ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.bareapi import BareApi

pytestmark = pytest.mark.servers


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        pytest.param("app=x", "a", id="equal"),
        pytest.param("app!=x", "b c", id="unequal includes unlabelled"),
        pytest.param("app in (x, z)", "a", id="in"),
        pytest.param("app notin (x)", "b c", id="notin includes unlabelled"),
        pytest.param("app", "a b", id="exists"),
        pytest.param("!app", "c", id="does not exist"),
    ],
)
async def test_label_selector_selects(api: BareApi, selector: str, chosen: str) -> None:
    path = api.path("secrets")
    for name, labels in (("a", {"app": "x", "n": "3"}), ("b", {"app": "y", "n": "5"}), ("c", {})):
        await api.admin.post(path, {"metadata": {"name": name, "labels": labels}})
    answer = await api.admin.get(path, labelSelector=selector)
    assert (answer.status, answer.names) == (200, chosen.split())


@pytest.mark.parametrize("selector", ["app=x=y", "(x)", ",", "!", "app in x", "app x", "app=-x", "-a=b"])
@pytest.mark.parametrize("verb", ["GET", "DELETE"])
async def test_malformed_selector_is_a_bad_request(api: BareApi, verb: str, selector: str) -> None:
    answer = await api.admin.call(verb, api.path("secrets"), labelSelector=selector)
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")
