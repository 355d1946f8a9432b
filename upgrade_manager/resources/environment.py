"""Names of the environment variables by which the toolkit image learns what it works for; a fixed interface."""

from __future__ import annotations

PLAN_NAME = "HARVESTER_UPGRADEPLAN_NAME"
NODE_NAME = "HARVESTER_UPGRADE_NODE_NAME"
POD_NAME = "HARVESTER_UPGRADE_POD_NAME"
