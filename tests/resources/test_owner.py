from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.api.keys import Component
from upgrade_manager.resources.owner import Owner

OWNER = Owner(name="up", uid="u-1")


def test_the_selector_finds_what_the_labels_mark() -> None:
    assert OWNER.labels(Component.REPO) == {
        "management.harvesterhci.io/upgrade-plan": "up",
        "management.harvesterhci.io/upgrade-component": "repo",
    }
    expected = "management.harvesterhci.io/upgrade-plan=up,management.harvesterhci.io/upgrade-component=repo"
    assert OWNER.selector(Component.REPO) == expected
    assert OWNER.selector() == "management.harvesterhci.io/upgrade-plan=up"


@pytest.mark.parametrize(
    ("references", "owns"),
    [
        pytest.param([{"uid": "u-1", "controller": True}], True, id="its own object"),
        pytest.param([{"uid": "u-1"}], False, id="one that it does not control"),
        pytest.param([{"uid": "u-0", "controller": True}], False, id="a namesake's that was deleted"),
        pytest.param([], False, id="nobody's"),
        pytest.param(None, False, id="one without references"),
    ],
)
def test_what_it_owns_is_told_by_the_uid(references: list[Any] | None, owns: bool) -> None:  # noqa: FBT001  # a table
    assert OWNER.owns({"metadata": {"ownerReferences": references}}) is owns
