"""The rows of every upgrade that the manager carries out on all hosts, by Plans of the system-upgrade-controller.

generic.py lists them, pipeline/host_changes.py carries them out.
"""

from __future__ import annotations

from upgrade_manager.release.migrations.row import Executor, Place, Row, Source, manifests


def _controller(file: str, line: int) -> Source:
    path = f"pkg/controller/master/upgrade/{file}"
    return Source(repository="harvester/harvester", tag="v1.8.0", path=path, line=line)


AGENT_HOLD = Row(
    id="system-agent-hold",
    place=Place.BEFORE_RANCHER,
    step="On every host rancher-system-agent is kept from restarting RKE2: a new Rancher gives all machines new plans.",
    changes=(
        "host: /run/systemd/system/rancher-system-agent.service.d/override.conf",
        "host: /run/systemd/system/rancher-system-agent.service.d/10-harvester-upgrade.env",
    ),
    done_if="both files have their text, and the agent has restarted since",
    undo="Each node's pre-drain and its reboot remove the files; a Plan removes them after the last node, after a "
    "failure and before a deletion.",
    sources=(
        manifests("v1.8.0", 1232),
        Source(repository="rancher/system-agent-installer-rke2", tag="v1.35.2+rke2r1", path="package/run.sh", line=1),
    ),
    own=Executor.MANAGER,
)

SKIP_MULTUS = Row(
    id="skip-multus-manifest",
    place=Place.AROUND_NODES,
    step="On clusters of several nodes RKE2 does not apply its manifest rke2-multus.yaml before the last node is done. "
    "The chart's upgrade would be interrupted by the next node.",
    changes=("host: /var/lib/rancher/rke2/server/manifests/rke2-multus.yaml.skip",),
    done_if="the file exists on every managed host that has its folder",
    undo="A Plan removes the file from every managed host after the last node, after a failure and before a deletion. "
    "A user's file of that name stays.",
    sources=(
        _controller("upgrade_controller.go", 429),
        _controller("upgrade_controller.go", 474),
        _controller("common.go", 247),
        Source(repository="k3s-io/k3s", tag="v1.35.2+k3s1", path="pkg/deploy/controller.go", line=128),
    ),
    own=Executor.MANAGER,
    harvester=Executor.MANAGER,
)

ROWS = (AGENT_HOLD, SKIP_MULTUS)
