"""What `--break` breaks, and how the remedy in the webhook's message mends it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from hack.demo.polling import until
from hack.demo.programs import DemoError
from upgrade_manager.api.keys import LONGHORN_SYSTEM
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import LONGHORN_ENGINES, LONGHORN_VOLUMES, NODES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

#: Seconds in which Longhorn has to notice a failed replica, and to rebuild it.
LONGHORN_TIMEOUT = 300.0
#: No disk has this tag.
_TAG = "nvme"


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A broken object."""

    #: What was done to it.
    damage: str
    #: What `mend` does.
    remedy: str
    mend: Callable[[], Awaitable[None]]


#: Breaks an object. Raises DemoError if the cluster has none that fits.
Break: TypeAlias = "Callable[[Client], Awaitable[Broken]]"


async def _degrade_volume(client: Client) -> Broken:
    """Fail a replica that Longhorn cannot rebuild, because no disk fits."""
    volume = await _volume(client, 0)

    async def is_degraded() -> bool:
        await _fail_replica(client, volume)
        return await _robustness(client, volume) == "degraded"

    async def is_healthy() -> bool:
        return await _robustness(client, volume) == "healthy"

    async def mend() -> None:
        await _patch(client, volume, {"diskSelector": None})
        await until(is_healthy, within=LONGHORN_TIMEOUT, otherwise=f"Volume {volume} has not been rebuilt")

    await _patch(client, volume, {"diskSelector": [_TAG]})
    await until(is_degraded, within=LONGHORN_TIMEOUT, otherwise=f"Volume {volume} has not become degraded")
    return Broken(
        damage=f"# a replica of Volume {volume} fails, and no disk has the tag {_TAG} for another one\n"
        f"{_command(volume, {'diskSelector': [_TAG]})}",
        remedy=f"{_command(volume, {'diskSelector': None})}\n# wait until Longhorn has rebuilt the replica",
        mend=mend,
    )


async def _cordon_node(client: Client) -> Broken:
    name = max(objects.name(node) for node in (await client.list(NODES)).items)

    async def mend() -> None:
        await client.patch(NODES, name, MergePatch({"spec": {"unschedulable": None}}))

    await client.patch(NODES, name, MergePatch({"spec": {"unschedulable": True}}))
    return Broken(damage=f"kubectl cordon {name}", remedy=f"kubectl uncordon {name}", mend=mend)


async def _leave_single_replica(client: Client) -> Broken:
    volume = await _volume(client, 1)

    async def mend() -> None:
        await _patch(client, volume, {"numberOfReplicas": 2})

    await _patch(client, volume, {"numberOfReplicas": 1})
    return Broken(
        damage=_command(volume, {"numberOfReplicas": 1}), remedy=_command(volume, {"numberOfReplicas": 2}), mend=mend
    )


BREAKS: Mapping[str, Break] = {
    "degraded-volume": _degrade_volume,
    "cordoned-node": _cordon_node,
    "single-replica": _leave_single_replica,
}


async def _volume(client: Client, index: int) -> str:
    """Return the name of an attached volume; each index is another one."""
    found = (await client.list(LONGHORN_VOLUMES, namespace=LONGHORN_SYSTEM)).items
    attached = sorted(objects.name(one) for one in found if objects.status(one).get("state") == "attached")
    if index >= len(attached):
        raise DemoError(f"{len(attached)} volumes are attached, too few to break. Choose another --scenario")
    return attached[index]


async def _fail_replica(client: Client, volume: str) -> None:
    engines = (await client.list(LONGHORN_ENGINES, namespace=LONGHORN_SYSTEM)).items
    engine = next(one for one in engines if objects.spec(one).get("volumeName") == volume)
    replica = min(objects.status(engine)["replicaModeMap"])
    patch = MergePatch({"status": {"replicaModeMap": {replica: "ERR"}}})
    await client.patch(LONGHORN_ENGINES, objects.name(engine), patch, namespace=LONGHORN_SYSTEM, subresource="status")


async def _robustness(client: Client, volume: str) -> str:
    found = await client.get(LONGHORN_VOLUMES, volume, namespace=LONGHORN_SYSTEM)
    return str(objects.status(found).get("robustness"))


async def _patch(client: Client, volume: str, spec: Object) -> None:
    await client.patch(LONGHORN_VOLUMES, volume, MergePatch({"spec": spec}), namespace=LONGHORN_SYSTEM)


def _command(volume: str, spec: Object) -> str:
    """Return the command of `_patch`."""
    patch = json.dumps({"spec": spec}, separators=(",", ":"))
    return f"kubectl patch {LONGHORN_VOLUMES.name} -n {LONGHORN_SYSTEM} {volume} --type merge -p '{patch}'"
