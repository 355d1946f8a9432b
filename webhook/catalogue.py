"""The checks that a new plan has to pass, in the order of their messages."""

from __future__ import annotations

from webhook.checks import nodes, pause_list, version

CHECKS = (
    version.CHECK,
    pause_list.CHECK,
    nodes.CHECK,
)
