from __future__ import annotations

from typing import Any

import pytest

from upgrade_manager.api.keys import Component
from upgrade_manager.resources.owner import Owner

OWNER = Owner(name="up", uid="u-1")


def test_labels_and_selectors() -> None:
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
        pytest.param([{"uid": "u-1", "controller": True}], True, id="controlled"),
        pytest.param([{"uid": "u-1"}], False, id="owned, not controlled"),
        pytest.param([{"uid": "u-0", "controller": True}], False, id="controlled by a deleted plan"),
        pytest.param([], False, id="no owner"),
        pytest.param(None, False, id="no references"),
    ],
)
def test_owns(references: list[Any] | None, owns: bool) -> None:  # noqa: FBT001  # a table
    assert OWNER.owns({"metadata": {"ownerReferences": references}}) is owns
