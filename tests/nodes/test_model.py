from __future__ import annotations

import pytest

from upgrade_manager.nodes.model import Hook


@pytest.mark.rule(
    "api: pre-hook and post-hook on a machine-plan Secret copy Rancher's pre-drain and post-drain",
    "nodes: while the pre-drain hook is pending the node has a pre-drain Job and is PreDraining",
)
@pytest.mark.parametrize(
    ("hook", "is_open"),
    [
        pytest.param(Hook(), False, id="no hook"),
        pytest.param(Hook(acknowledged="D"), False, id="acknowledged without a request"),
        pytest.param(Hook(requested="D"), True, id="pending"),
        pytest.param(Hook(requested="D", acknowledged="D"), False, id="acknowledged"),
        pytest.param(Hook(requested="D", acknowledged="D "), True, id="equal to the byte, or not at all"),
    ],
)
def test_hook_is_pending_until_acknowledged(hook: Hook, is_open: bool) -> None:  # noqa: FBT001  # a table
    assert hook.pending is is_open
