"""rancher-system-agent, which is held and released, and the unit that reboots, with a real systemd as process 1."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from tests.support.programs.polling import eventually
from tests.support.programs.private_host import SYSTEMD, PrivateHost, private_host, skip_without
from tests.support.toolkit.os_upgrade import os_iso
from tests.support.toolkit.toolkit import ToolkitWorld, toolkit_world
from upgrade_manager.resources.host_scripts import AGENT, AGENT_ENVIRONMENT, AGENT_FOLDER, HOLD_AGENT, RELEASE_AGENT
from upgrade_manager.toolkit.host.host_paths import KUBECTL, POD_MANIFESTS
from upgrade_manager.toolkit.host.host_programs import Call
from upgrade_manager.toolkit.host.system_agent import restore_system_agent, system_agent_override
from upgrade_manager.toolkit.os import reboot
from upgrade_manager.toolkit.run.context import ToolkitContext

pytestmark = [pytest.mark.full, pytest.mark.real_loop]

VARIABLE = "INSTALL_RKE2_SKIP_ENABLE"
#: Writes the variables as each start sees them.
UNIT = f"""[Unit]
DefaultDependencies=no
[Service]
EnvironmentFile=-/etc/default/rancher-system-agent
ExecStart=/bin/sh -c 'echo "${VARIABLE} $CATTLE_LOGLEVEL" >/run/$INVOCATION_ID; exec sleep infinity'
"""
TARGET = f"""[Unit]
DefaultDependencies=no
Requires={AGENT}
"""
FILES = {
    "/etc/machine-id": "0" * 31 + "1\n",
    "/etc/os-release": 'PRETTY_NAME="Harvester v1.7.1"\n',
    "/etc/default/rancher-system-agent": "CATTLE_LOGLEVEL=debug\n",
    f"/etc/systemd/system/{AGENT}": UNIT,
    "/etc/systemd/system/host.target": TARGET,
    f"{POD_MANIFESTS}/kube-apiserver.yaml": "kind: Pod\n",
    # Prints the phase of the Pod, as kubectl does.
    KUBECTL: "#!/bin/sh\ncat /run/phase\n",
}


@pytest.fixture
async def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PrivateHost]:
    """Boot a host with the agent."""
    skip_without(SYSTEMD)
    init = (SYSTEMD, "--unit=host.target", "--log-target=null")
    async with private_host(tmp_path, monkeypatch, init=init, files=FILES) as host:
        host.tree.path(KUBECTL).chmod(0o755)
        await eventually(lambda: answers(host), seconds=60)
        yield host


async def answers(host: PrivateHost) -> bool:
    """Return True once systemd has started the agent."""
    active = Call(argv=("systemctl", "is-active", AGENT), timeout=10)
    return (await host.programs.run(active)).status == 0


async def invocation(host: PrivateHost) -> str:
    """Return the agent's latest start."""
    return await host.run("systemctl", "show", "--property=InvocationID", "--value", AGENT)


async def variables(host: PrivateHost) -> str:
    """Return what the latest start of the agent has seen."""
    path = f"/run/{await invocation(host)}"

    async def written() -> str:
        return host.tree.read(path) or ""

    found = await eventually(written, seconds=60)
    return str(found).rstrip("\n")


def context_of(world: ToolkitWorld, host: PrivateHost) -> ToolkitContext:
    return world.context(tree=host.tree, programs=host.programs)


async def by_script(host: PrivateHost, _: ToolkitContext) -> None:
    await host.run("sh", "-c", RELEASE_AGENT)


async def by_command(_: PrivateHost, context: ToolkitContext) -> None:
    await restore_system_agent(context)


@pytest.mark.parametrize("release", [by_script, by_command])
async def test_hold_reaches_the_agent_and_its_release_ends_it(
    tmp_path: Path, host: PrivateHost, release: Callable[[PrivateHost, ToolkitContext], Awaitable[None]]
) -> None:
    user = f"{AGENT_FOLDER}/user.conf"
    host.tree.write(user, "[Service]\nNice=5\n")
    async with toolkit_world(tmp_path / "world") as world:
        context = context_of(world, host)
        assert await variables(host) == " debug"

        await host.run("sh", "-c", HOLD_AGENT)
        assert await variables(host) == "true debug"
        shown = await host.run("systemctl", "show", "--property=EnvironmentFiles", "--value", AGENT)
        assert f"{AGENT_ENVIRONMENT} (ignore_errors=yes)" in shown
        held = await invocation(host)
        await host.run("sh", "-c", HOLD_AGENT)
        assert await invocation(host) == held

        await release(host, context)
        assert await system_agent_override(context) == ""
        assert await variables(host) == " debug"
        assert await host.run("systemctl", "show", "--property=DropInPaths", "--value", AGENT) == user


async def test_unit_reboots_once_the_pod_has_succeeded(
    tmp_path: Path, host: PrivateHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_record(_: ToolkitContext) -> None:
        return None

    monkeypatch.setattr(reboot, "record_of", no_record)
    monkeypatch.setattr(reboot, "is_verified", lambda *_: True)
    monkeypatch.setattr(reboot, "_POLL", "0.2")
    async with toolkit_world(tmp_path / "world", os_iso()) as world:
        context = context_of(world, host)
        host.tree.write("/run/phase", "Running")
        assert await reboot.reboot_missing(context) == f"unit {reboot.unit_of(world.context().pod)} does not run"
        await reboot.arrange_reboot(context)
        assert await reboot.reboot_missing(context) == ""
        assert host.tree.names(POD_MANIFESTS) == ["kube-apiserver.yaml"]
        manifests = host.root / POD_MANIFESTS.lstrip("/")
        host.tree.write("/run/phase", "Succeeded")

        async def is_down() -> bool:
            return host.process.returncode is not None

        # So the kernel carries out reboot(2) in namespaces: pid_namespaces(7).
        await eventually(is_down, seconds=60)
        assert host.process.returncode == -signal.SIGHUP
        assert list(manifests.iterdir()) == []
