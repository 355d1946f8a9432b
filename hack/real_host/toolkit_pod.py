"""The toolkit's commands in the guest, in a container as their Jobs have it: privileged, in the host's processes.

The kubelet is simulated: ctr starts the container, and node_cluster.py has its Pod. The container's image is the real
one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hack.real_host.node_cluster import PLAN
from hack.real_host.root_tree import NODE
from upgrade_manager.resources.toolkit import NODE_NAME, PLAN_NAME, POD_NAME

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from hack.real_host.machine import Machine
    from hack.real_host.node_cluster import NodeCluster

_CTR = ("ctr", "--address", "/run/k3s/containerd/containerd.sock", "--namespace", "k8s.io")
_IMAGE = "localhost/toolkit:host"
_MESSAGE = "/run/toolkit-message"
_KUBECONFIG = "/var/lib/rancher/rke2/agent/kubelet.kubeconfig"
#: As the kubelet mounts a Pod's hostPath without mount propagation.
_HOST = "type=bind,src=/,dst=/host,options=rbind:rprivate:rw"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The end of a command."""

    status: int
    #: The Pod's termination message; empty after a success.
    message: str
    log: str


class ToolkitPods:
    """Starts commands in the guest as Pods; `repository` is the port of the ISO's files."""

    def __init__(self, machine: Machine, cluster: NodeCluster, *, repository: int, image: Path, folder: Path) -> None:
        self._machine = machine
        self._cluster = cluster
        self._repository = repository
        self._image = image
        self._folder = folder
        self._number = 0
        self.pod = ""

    def load_image(self) -> None:
        """Import the toolkit's image, and write the kubelet's kubeconfig."""
        self._machine.call(*_CTR, "images", "import", "--index-name", _IMAGE, "-", stdin=self._image)
        source = self._folder / "kubeconfig"
        source.write_text(self._cluster.kubeconfig, encoding="utf-8")
        self._machine.call("sh", "-c", f"cat >{_KUBECONFIG}", stdin=source)

    def run(self, command: str) -> Ended:
        """Run a command of `node` to its end, as a new Pod."""
        process = self.start(command)
        return self.ended(process)

    def start(self, command: str) -> subprocess.Popen[bytes]:
        """Start a command of `node` as a new Pod."""
        self._number += 1
        self.pod = f"{self._folder.name.lower().replace('_', '-')}-{self._number}"
        self._cluster.start_pod(self.pod)
        self._machine.call("rm", "-f", _MESSAGE)
        variables = {
            PLAN_NAME: PLAN,
            NODE_NAME: NODE,
            POD_NAME: self.pod,
            "KUBECONFIG": f"/host{_KUBECONFIG}",
            "UPGRADE_REPO_URL": f"http://127.0.0.1:{self._repository}",
            "TERMINATION_LOG": f"/host{_MESSAGE}",
        }
        env = [part for name, value in variables.items() for part in ("--env", f"{name}={value}")]
        options = ("run", "--rm", "--net-host", "--privileged", "--with-ns", "pid:/proc/1/ns/pid", "--mount", _HOST)
        argv = (*_CTR, *options, *env, _IMAGE, self.pod, "upgrade_node.sh", command)
        return self._machine.start(*argv, log=self._log)

    def ended(self, process: subprocess.Popen[bytes]) -> Ended:
        """Wait for the end of a command, and report it as its Pod's phase."""
        status = process.wait()
        self._cluster.end_pod(self.pod, "Failed" if status else "Succeeded")
        message = self._machine.run("cat", _MESSAGE).stdout.strip()
        return Ended(status=status, message=message, log=self._log.read_text(encoding="utf-8", errors="replace"))

    @property
    def _log(self) -> Path:
        return self._folder / f"{self.pod}.log"
