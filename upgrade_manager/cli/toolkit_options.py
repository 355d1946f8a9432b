"""Options of the commands that run inside the Jobs.

options.py adds their parsers; toolkit.py runs the commands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from upgrade_manager.api.names import FIRST_ATTEMPT, is_object_name
from upgrade_manager.resources.repository import ROOT
from upgrade_manager.resources.toolkit import (
    HOLDS,
    ISO_CHECKSUMS,
    NODE_NAME,
    PLAN_ATTEMPT,
    PLAN_NAME,
    PLAN_UID,
    POD_NAME,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

#: The host's root file system in the Pod.
HOST_DIR = "HOST_DIR"
#: The upgrade repository, where it is not the Service in the cluster.
REPO_URL = "UPGRADE_REPO_URL"
#: The mount point of the ISO, in the Pod of `node checksums`.
ISO_DIR = "UPGRADE_ISO_DIR"
#: File whose content becomes the Pod's termination message.
TERMINATION_LOG = "TERMINATION_LOG"
#: The number of an attempt.
_ATTEMPT = re.compile("[1-9][0-9]{0,5}")
#: The command that always succeeds.
SURVEY = "node survey"
NODE_COMMANDS = {
    "survey": "look for what would make this node's upgrade fail, and change nothing",
    "prepare": "load the release's images onto this node",
    "checksums": "compute the checksums of the mounted ISO's files",
    "pre-drain": "make this node ready to be drained",
    "post-drain": "upgrade this node's operating system after its Kubernetes",
    "single-node-upgrade": "upgrade the only node of a cluster",
}
#: The commands of Jobs; --help of the program names them in a line, apart from those for users.
JOB_COMMANDS = ("node", "cluster-upgrade", "vm-live-migrate-detector", "restore-vm", "version-guard", "image-cleanup")
_EPILOG = "exit status: 0 when all is done, 1 after a failed step, 2 for a usage error"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolkitOptions:
    """Options of one command, from arguments and the Pod's environment."""

    #: The name in the catalogue of commands.
    command: str
    plan: str = ""
    #: Empty in a Job of an earlier version of the manager.
    plan_uid: str = ""
    #: The attempt of the plan, after which its Jobs are named.
    attempt: int = FIRST_ATTEMPT
    node: str = ""
    pod: str = ""
    #: vm-live-migrate-detector: stop the VMs that it finds.
    shutdown: bool = False
    #: Hold before the reboot.
    holds: bool = False
    kubeconfig: str = ""
    host_dir: str = "/host"
    #: URL of the directory with the ISO's content; "" for the Service in the cluster.
    repo_url: str = ""
    termination_log: str = "/dev/termination-log"
    iso_dir: str = ROOT
    #: Of the ISO's files, as text; "" to check none.
    checksums: str = ""


def add_toolkit_commands(commands: argparse._SubParsersAction[Any]) -> None:
    """Add a parser for each command."""

    def add(name: str, purpose: str) -> argparse.ArgumentParser:
        # Without `help`, so that the list of commands leaves it out.
        parser: argparse.ArgumentParser = commands.add_parser(
            name, description=purpose, epilog=_EPILOG, allow_abbrev=False
        )
        parser.add_argument("--kubeconfig", default="", help="kubeconfig file; else the Pod's service account")
        return parser

    node = add("node", "upgrade the node on which the Pod runs")
    node.add_argument("type", choices=list(NODE_COMMANDS), help="what to do")
    add("cluster-upgrade", "upgrade Rancher, Harvester and their components")
    detector = add("vm-live-migrate-detector", "list the VMs of a node that cannot be live-migrated")
    detector.add_argument("node", metavar="NODE", type=object_name)
    detector.add_argument("--shutdown", action="store_true", help="stop these VMs")
    detector.add_argument("--upgrade", metavar="PLAN", type=object_name, default="", help="store them for restore-vm")
    restore = add("restore-vm", "start the VMs of a node that the upgrade stopped")
    restore.add_argument("--node", required=True, type=object_name)
    restore.add_argument("--upgrade", metavar="PLAN", required=True, type=object_name)
    guard = add("version-guard", "check whether Harvester supports the upgrade")
    guard.add_argument("upgrade", metavar="PLAN", type=object_name)
    add("image-cleanup", "remove the images that only the previous release needs")


def toolkit_options(
    flags: argparse.Namespace, environ: Mapping[str, str], *, parser: argparse.ArgumentParser
) -> ToolkitOptions:
    """Return the options of a command; a missing variable ends the process as a usage error."""
    command = flags.command if flags.command != "node" else f"node {flags.type}"

    def variable(name: str, *, required: bool) -> str:
        value = environ.get(name, "")
        if required and not value:
            parser.error(f"environment variable {name} is not set")
        return value

    runs_on_node = command.startswith("node ")
    drains = runs_on_node and flags.type not in {"survey", "prepare", "checksums"}
    return ToolkitOptions(
        command=command,
        plan=getattr(flags, "upgrade", "")
        or variable(PLAN_NAME, required=runs_on_node or command == "cluster-upgrade"),
        plan_uid=environ.get(PLAN_UID, ""),
        attempt=parse_attempt(environ.get(PLAN_ATTEMPT, "")),
        node=getattr(flags, "node", "") or variable(NODE_NAME, required=drains),
        pod=variable(POD_NAME, required=command in {"node post-drain", "node single-node-upgrade"}),
        holds=bool(environ.get(HOLDS, "")),
        shutdown=getattr(flags, "shutdown", False),
        kubeconfig=flags.kubeconfig,
        host_dir=environ.get(HOST_DIR) or "/host",
        repo_url=environ.get(REPO_URL, ""),
        termination_log=environ.get(TERMINATION_LOG) or "/dev/termination-log",
        iso_dir=environ.get(ISO_DIR) or ROOT,
        checksums=environ.get(ISO_CHECKSUMS, ""),
    )


def parse_attempt(text: str) -> int:
    """Return the number of the attempt; the first one without a valid number."""
    return int(text) if _ATTEMPT.fullmatch(text) else FIRST_ATTEMPT


def object_name(text: str) -> str:
    """Parse the name of an object."""
    import argparse  # noqa: PLC0415  # only for the error

    if not is_object_name(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a valid name")
    return text
