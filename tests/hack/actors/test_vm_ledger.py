"""The record of VMs that the toolkit shuts down, and their restart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hack.actors.vm_ledger import VMLedger
from hack.cluster.foreign import our_crd
from hack.cluster.seeds import Seeds
from hack.virtual_time import virtual_now
from tests.support.actor_cluster import ISO_URL, ActorCluster
from upgrade_manager.kube.errors import Conflict, NotFound, Transient
from upgrade_manager.kube.resources import CONFIG_MAPS, EVENTS, UPGRADE_PLANS

if TYPE_CHECKING:
    from upgrade_manager.kube.objects import Object

PLACE = "harvester-system"
DETECTOR = "vm-live-migrate-detector"


class Orders:
    """Records requests to KubeVirt; requests for some VMs fail."""

    def __init__(self) -> None:
        self.given: list[str] = []
        self.errors: dict[str, Exception] = {}

    async def raw(self, _method: str, path: str, *, body: Object) -> None:
        assert body == {}
        namespace, _kind, name, action = path.split("/")[-4:]
        self.given.append(f"{action} {namespace}/{name}")
        if name in self.errors:
            raise self.errors[name]


class Setup:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        stage = ActorCluster()
        self.stage, self.client, self.orders = stage, stage.client, Orders()
        monkeypatch.setattr(stage.client, "raw", self.orders.raw)
        self.ledger = VMLedger(stage.context, stage.client)

    async def set_up(self, *, restore: bool = True) -> None:
        await self.stage.prepare(PLACE, groups=("none",))
        seeds = Seeds(self.client, self.stage.scenario, now=virtual_now, iso_url=ISO_URL, api_url="https://10.0.0.1")
        await seeds.define([our_crd()])
        plan = {"metadata": {"name": "up"}, "spec": {"version": "v1", "restoreVM": restore}}
        named = {"apiVersion": UPGRADE_PLANS.api_version, "kind": UPGRADE_PLANS.kind}
        await self.client.create(UPGRADE_PLANS, {**named, **plan})

    async def listed(self) -> Any:
        try:
            return (await self.client.get(CONFIG_MAPS, "up-restore-vm", namespace=PLACE))["data"]
        except NotFound:
            return None

    async def events(self) -> list[tuple[str, str, str]]:
        found = (await self.client.list(EVENTS)).items
        return sorted((event["source"]["component"], event["reason"], event["message"]) for event in found)


@pytest.fixture
async def setup(monkeypatch: pytest.MonkeyPatch) -> Setup:
    return Setup(monkeypatch)


def machine(name: str, **conditions: str) -> Object:
    listed = [{"type": type_, "status": status} for type_, status in conditions.items()]
    return {"metadata": {"name": name, "namespace": "default"}, "status": {"conditions": listed}}


def pod(uid: str = "p-1") -> Object:
    env = [{"name": "HARVESTER_UPGRADEPLAN_NAME", "value": "up"}]
    return {"metadata": {"uid": uid, "name": "p"}, "spec": {"containers": [{"env": env}]}}


async def test_vms_are_recorded_by_node_before_they_stop(setup: Setup) -> None:
    await setup.set_up()
    await setup.ledger.shut_down([machine("a"), machine("b", Paused="True"), machine("c")], pod(), "n1")
    assert await setup.listed() == {"n1": "default/a,default/c"}
    assert setup.orders.given == ["stop default/a", "stop default/b", "stop default/c"]
    done = "Shutdown completed for 3 VM(s) on node n1, success: 3, failed: 0"
    assert await setup.events() == [
        (DETECTOR, "RestoreVMConfigMapCreated", f"ConfigMap {PLACE}/up-restore-vm created"),
        (DETECTOR, "VMShutdownCompleted", done),
    ]


async def test_next_attempt_keeps_vms_that_are_off(setup: Setup) -> None:
    await setup.set_up()
    await setup.ledger.shut_down([machine("a")], pod(), "n1")
    setup.ledger.forget(pod())
    await setup.ledger.shut_down([], pod("p-2"), "n1")
    await setup.ledger.shut_down([], pod("p-3"), "n2")
    assert await setup.listed() == {"n1": "default/a", "n2": ""}
    assert [reason for _, reason, _ in await setup.events()].count("RestoreVMConfigMapCreated") == 1


@pytest.mark.parametrize("plan", ["up", "none"], ids=["a plan that does not want it", "no plan"])
async def test_vms_that_are_not_recorded(setup: Setup, plan: str) -> None:
    await setup.set_up(restore=plan == "none")
    other = pod()
    other["spec"]["containers"][0]["env"][0]["value"] = plan
    await setup.ledger.shut_down([machine("a")], other, "n1")
    assert (await setup.listed(), await setup.events()) == (None, [])
    assert setup.orders.given == ["stop default/a"]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        pytest.param(None, "", id="it starts"),
        pytest.param(Conflict("already running"), "", id="it runs already"),
        pytest.param(
            NotFound("no such VM"), "1 of 2 VMs could not be started: default/b: no such VM", id="it is not found"
        ),
        pytest.param(Transient("500"), "1 of 2 VMs could not be started: default/b: 500", id="KubeVirt fails"),
    ],
)
async def test_recorded_vms_of_the_node_are_started(setup: Setup, error: Exception | None, said: str) -> None:
    await setup.set_up()
    await setup.ledger.shut_down([machine("a"), machine("b")], pod(), "n1")
    await setup.ledger.shut_down([machine("x")], pod("p-2"), "n2")
    setup.orders.given.clear()
    if error is not None:
        setup.orders.errors["b"] = error
    assert await setup.ledger.start("n1", "up") == said
    assert setup.orders.given == ["start default/a", "start default/b"]
    reasons = [reason for source, reason, _ in await setup.events() if source == "restore-vm"]
    assert reasons == ["RestoreVMFailed" if said else "RestoreVMCompleted"]
