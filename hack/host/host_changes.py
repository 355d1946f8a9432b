"""The effects of the scripts of Plans on hosts, and the harm to hosts without them.

job_commands.py calls it. The scripts themselves run in tests/resources/test_host_scripts.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hack.actors.container_work import Work
from hack.host import rke2_manifests, tree
from hack.host.systemd import systemctl

if TYPE_CHECKING:
    from hack.actors.hosts import Hosts
    from hack.host.machines import Machine, Machines

_AGENT = "rancher-system-agent.service"


class HostChanges:
    """The changes of all hosts of a cluster."""

    def __init__(self, hosts: Hosts, machines: Machines) -> None:
        self._hosts = hosts
        self._machines = machines
        #: The kubelet of each host when it was seen last.
        self._kubelets = {name: hosts.of(name).kubelet for name in hosts.names()}

    def run(self, work: Work, node: str) -> None:
        """Do what the script does."""
        machine = self._machines.of(node)
        root = machine.tree.root
        match work:
            case Work.AGENT_HOLD if not tree.is_held(root):
                tree.hold(root)
                _restart_agent(machine)
            case Work.AGENT_RELEASE if tree.is_held(root):
                tree.release(root)
                _restart_agent(machine)
            case Work.SKIP_ON:
                rke2_manifests.skip(root)
            case Work.SKIP_OFF:
                rke2_manifests.unskip(root)

    def hold_all(self) -> None:
        """Hold all agents back, as Harvester's toolkit does (v1.8.0 upgrade_manifests.sh:1232)."""
        for name in self._running():
            self.run(Work.AGENT_HOLD, name)

    def rancher_upgraded(self) -> None:
        """Restart RKE2 on each host whose agent is not held back.

        Rancher 2.14 gives all machines new plans (observed for release-steps.md, row 1a.4). The installer in a plan
        restarts RKE2 (rancher/system-agent-installer-rke2 package/run.sh). Guess: all plans come at once.
        """
        for name in self._running():
            if not tree.is_held(self._machines.of(name).tree.root):
                self._hosts.undue.append(f"RKE2 restarts on {name} with its VMs: the agent is not held back")

    def host_changed(self, node: str) -> None:
        """Apply the manifest of a RKE2 that starts in another version."""
        host = self._hosts.of(node)
        before, self._kubelets[node] = self._kubelets.get(node, host.kubelet), host.kubelet
        if host.kubelet == before or not self._hosts.is_management(node):
            return
        root = self._machines.of(node).tree.root
        rke2_manifests.stage(root, host.kubelet)
        others = [name for name in self._hosts.names() if self._hosts.of(name).kubelet == before]
        if others and not rke2_manifests.is_skipped(root):
            self._hosts.undue.append(f"RKE2 upgrades rke2-multus from {node} while {', '.join(others)} run {before}")

    def _running(self) -> list[str]:
        return [name for name in self._hosts.names() if self._hosts.of(name).up]


def _restart_agent(machine: Machine) -> None:
    for arguments in (["daemon-reload"], ["restart", _AGENT]):
        systemctl(machine.tree.root, machine.programs.state, arguments)
