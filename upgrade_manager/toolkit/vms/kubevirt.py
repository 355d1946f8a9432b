"""KubeVirt's API: a check that it serves, and the start and stop of VMs.

vm_stop.py stops VMs by it, the command restore_vm starts VMs.

Start and stop requests are asynchronous: a request changes the VM, and KubeVirt starts or ends the instance later. A VM
that is already starting or stopping gets no second request.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING
from urllib.parse import quote

from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.api.names import is_namespace, is_object_name
from upgrade_manager.api.remedy import remedy_text
from upgrade_manager.facts.final_phases import is_final
from upgrade_manager.facts.kubevirt import KUBEVIRT, unmet
from upgrade_manager.facts.vm_start import is_stopping, starts_by_itself
from upgrade_manager.kube import objects
from upgrade_manager.kube.errors import Conflict, NotFound
from upgrade_manager.kube.resources import KUBEVIRTS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from upgrade_manager.toolkit.run.errors import StepFailed

if TYPE_CHECKING:
    from upgrade_manager.facts.vm_obstacles import VMObstacle
    from upgrade_manager.kube.client import Client
    from upgrade_manager.kube.objects import Object

_API = "/apis/subresources.kubevirt.io/v1"


class Started(StrEnum):
    """The outcome of a start."""

    #: The VM runs, or is going to.
    YES = "yes"
    #: The VM does not exist.
    ABSENT = "absent"


async def kubevirt_problem(client: Client) -> str:
    """Return the reason why KubeVirt cannot start VMs; empty if KubeVirt can start VMs. Raises KubeError."""
    problem = unmet(await client.find(KUBEVIRTS, KUBEVIRT, namespace=HARVESTER_SYSTEM))
    if problem:
        return problem
    try:
        await client.raw("GET", f"{_API}/healthz")
    except NotFound:
        return "the API server does not serve subresources.kubevirt.io; check APIService v1.subresources.kubevirt.io"
    return ""


async def stop(client: Client, instance: Object) -> str:
    """Request a stop of the instance's VM; return the reason why the request has no effect, or an empty text.

    Raises KubeError.
    """
    try:
        await _request(client, *objects.key(instance), "stop")
    except Conflict as error:
        # The instance has ended meanwhile, or another request was faster; the next check shows the state.
        return str(error)
    return ""


async def start(client: Client, machine: str) -> Started:
    """Request a start of namespace/name, unless the VM runs or is going to.

    Raises Conflict while the VM cannot start, StepFailed for a name that is not valid, and KubeError.
    """
    namespace, _, name = machine.partition("/")
    if not is_namespace(namespace) or not is_object_name(name):
        raise StepFailed(f"{machine[:100]!r} is not a valid namespace/name")
    found = await client.find(VIRTUAL_MACHINES, name, namespace=namespace)
    if found is None or objects.is_deleting(found):
        return Started.ABSENT
    instance = await client.find(VIRTUAL_MACHINE_INSTANCES, name, namespace=namespace)
    if instance is not None and not is_final(instance):
        if objects.is_deleting(instance) or is_stopping(found, instance):
            raise Conflict(f"VirtualMachine {machine} is still stopping")
        return Started.YES
    if not starts_by_itself(found):
        await _request(client, namespace, name, "start")
    return Started.YES


def described(obstacle: VMObstacle) -> str:
    """Return the obstacle with its remedies."""
    return f"{obstacle.why}. {remedy_text(obstacle.ways_out)}"


async def _request(client: Client, namespace: str, name: str, action: str) -> None:
    path = f"{_API}/namespaces/{quote(namespace, safe='')}/virtualmachines/{quote(name, safe='')}/{action}"
    await client.raw("PUT", path, body={})
