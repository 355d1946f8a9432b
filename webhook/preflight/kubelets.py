"""Every node has disk space for the images of the release, by the check of Initialize (preflight/check.py).

gate.py has the row. The user's requests go through the API server, which needs a permission that most users should not
have.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from upgrade_manager.api.annotations import Flag
from upgrade_manager.api.keys import ANNOTATION_SKIP_DISK_CHECK, MANAGED_SELECTOR
from upgrade_manager.api.text import name_list
from upgrade_manager.kube.errors import Forbidden
from upgrade_manager.kube.resources import NODES
from upgrade_manager.preflight.poller import ProbeError
from webhook.check import CannotRun, Check, Finding, NotNeeded
from webhook.cluster import Listing
from webhook.listings import keep

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object
    from upgrade_manager.preflight.check import Finding as State
    from upgrade_manager.preflight.check import Preflight
    from upgrade_manager.preflight.kubelets import KubeletReader
    from webhook.check import Subject

NAME = "disk space"
#: The fields by which kubelets are reached.
_MANAGED = Listing(
    resource=NODES,
    label_selector=MANAGED_SELECTOR,
    slim=keep("status.addresses", "status.daemonEndpoints", "status.nodeInfo"),
)
_NO_PROXY = (
    "You need get on nodes/proxy, which also permits to run commands in every Pod: the manager checks the disks when "
    "the upgrade starts"
)


class _NoProxy(Forbidden):
    """The user may not read kubelets through the API server; another Forbidden is about the objects that are listed."""


class UserKubelets:
    """A `KubeletReader` whose user may lack the permission, which ends the check at once."""

    def __init__(self, kubelets: KubeletReader) -> None:
        self._kubelets = kubelets

    async def read(self, node: Object, path: str) -> bytes:
        """Implement `KubeletReader`. Raises _NoProxy."""
        try:
            return await self._kubelets.read(node, path)
        except ProbeError as error:
            if isinstance(error.__cause__, Forbidden):
                raise _NoProxy(str(error)) from error
            raise


def check(client: Client, preflight: Preflight, plan: Object, *, on_wait: Callable[[str], None]) -> Check:
    """Return the check of that plan; `preflight` reads kubelets as `UserKubelets`, `on_wait` shows a wait."""

    async def find(subject: Subject) -> list[Finding]:
        skip = subject.annotations.skip_disk_check
        if skip is Flag.BAD:
            # The check of annotations reports it.
            return []
        if skip:
            raise NotNeeded(f"The plan has the annotation {ANNOTATION_SKIP_DISK_CHECK}")
        nodes = await subject.cluster.list(_MANAGED)
        try:
            state = await settled(lambda: preflight.disks(client, subject.annotations, nodes, plan=plan), on_wait)
        except _NoProxy as error:
            raise CannotRun(_NO_PROXY) from error
        return [Finding(problem=problem) for problem in state.problems]

    return Check(name=NAME, field="spec", find=find)


async def settled(read: Callable[[], Awaitable[State]], on_wait: Callable[[str], None]) -> State:
    """Repeat a check until it is final, as Initialize does."""
    state = await read()
    if state.failing:
        on_wait(f"waiting a minute for the kubelet of {name_list(list(state.failing))}, as the upgrade would")
    while state.pending:
        await asyncio.sleep(state.retry_after)
        state = await read()
    return state
