"""Nodes, their machine-plan Secrets and Machines, and what decisions see of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from upgrade_manager.api.node_states import NodeState
from upgrade_manager.facts.job_state import JobState, Progress
from upgrade_manager.kube.store import Store
from upgrade_manager.nodes.model import NodeView

OLD, NEW = "Harvester v1.6.1", "Harvester v1.7.0"
PRE, POST = "management.harvesterhci.io/pre-hook", "management.harvesterhci.io/post-hook"
PRE_DRAIN, POST_DRAIN = "rke.cattle.io/pre-drain", "rke.cattle.io/post-drain"
#: As Rancher writes it: sorted keys, no blanks.
OPTIONS = json.dumps(
    {"enabled": True, "preDrainHooks": [{"annotation": PRE}], "postDrainHooks": [{"annotation": POST}]},
    separators=(",", ":"),
    sort_keys=True,
)
VIEW = NodeView(
    name="n1",
    state=NodeState.IMAGE_PRELOADED,
    os_image=OLD,
    ready=True,
    pending_os="",
    secret="s1",  # noqa: S106  # its name
    jobs={},
)


def job_state(progress: Progress = Progress.RUNNING, **more: Any) -> JobState:
    return JobState(namespace="h", name="j", uid="u", progress=progress, **more)


RUNNING, COMPLETE, FAILED = map(job_state, Progress)


def node(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **more}}


def secret(name: str, machine: str, **annotations: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"rke.cattle.io/machine-name": machine}, "annotations": annotations}}


def machine(name: str, node_name: str = "") -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"nodeRef": {"name": node_name}}}


def store_of(objs: Iterable[dict[str, Any]]) -> Store:
    store = Store()
    store.replace(list(objs), "1")
    return store
