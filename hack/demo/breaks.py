"""Breaks of the cluster before an upgrade, and the remedies in the webhook's message that mend them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from hack.demo.commands import Patch
from hack.demo.polling import until
from hack.demo.programs import DemoError
from upgrade_manager.api.keys import LONGHORN_SYSTEM
from upgrade_manager.kube import objects
from upgrade_manager.kube.patch import MergePatch
from upgrade_manager.kube.resources import LONGHORN_ENGINES, LONGHORN_VOLUMES, NODES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from upgrade_manager.kube.client import Client

#: Seconds in which Longhorn has to notice a failed replica, and to rebuild it.
LONGHORN_TIMEOUT = 300.0
#: No disk has this tag.
_TAG = "nvme"


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A broken object."""

    #: The description of the damage.
    damage: str
    #: The description of the remedy.
    remedy: str
    mend: Callable[[], Awaitable[None]]


#: Breaks an object. Raises DemoError if the cluster has none that fits.
Break: TypeAlias = "Callable[[Client], Awaitable[Broken]]"


async def _degrade_volume(client: Client) -> Broken:
    """Fail a replica that Longhorn cannot rebuild, because no disk fits."""
    volume = await _volume(client, 0)
    damage, remedy = _volume_patch(volume, diskSelector=[_TAG]), _volume_patch(volume, diskSelector=None)

    async def is_degraded() -> bool:
        await _fail_replica(client, volume)
        return await _robustness(client, volume) == "degraded"

    async def is_healthy() -> bool:
        return await _robustness(client, volume) == "healthy"

    async def mend() -> None:
        await remedy.run(client)
        await until(is_healthy, within=LONGHORN_TIMEOUT, otherwise=f"Volume {volume} has not been rebuilt")

    await damage.run(client)
    await until(is_degraded, within=LONGHORN_TIMEOUT, otherwise=f"Volume {volume} has not become degraded")
    return Broken(
        damage=f"# a replica of Volume {volume} fails, and no disk has the tag {_TAG} for another one\n{damage}",
        remedy=f"{remedy}\n# wait until Longhorn has rebuilt the replica",
        mend=mend,
    )


async def _cordon_node(client: Client) -> Broken:
    name = max(objects.name(node) for node in (await client.list(NODES)).items)
    damage, remedy = (
        Patch(resource=NODES, name=name, body={"spec": {"unschedulable": value}}, text=f"kubectl {verb} {name}")
        for verb, value in (("cordon", True), ("uncordon", None))
    )
    return await _broken(client, damage, remedy)


async def _leave_single_replica(client: Client) -> Broken:
    volume = await _volume(client, 1)
    damage, remedy = (_volume_patch(volume, numberOfReplicas=number) for number in (1, 2))
    return await _broken(client, damage, remedy)


async def _broken(client: Client, damage: Patch, remedy: Patch) -> Broken:
    await damage.run(client)
    return Broken(damage=str(damage), remedy=str(remedy), mend=lambda: remedy.run(client))


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


def _volume_patch(volume: str, **spec: Any) -> Patch:
    return Patch(resource=LONGHORN_VOLUMES, name=volume, namespace=LONGHORN_SYSTEM, body={"spec": spec})
