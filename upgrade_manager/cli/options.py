from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from upgrade_manager import __version__
from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.runtime.bindaddress import BindAddress
from upgrade_manager.runtime.logging import LEVELS, LogFormat

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: The repository Service in the cluster; a manager outside the cluster needs another URL.
DEFAULT_REPO_URL = "http://{service}.harvester-system"
#: Exit status of a command line that cannot be understood, as argparse and kubectl have it.
USAGE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What `upgrade-manager run` is told by flags and environment."""

    kubeconfig: str = ""
    leader_elect: bool = False
    #: None turns the endpoint off.
    metrics: BindAddress | None = None
    metrics_secure: bool = True
    probes: BindAddress | None = None
    log_level: str = "info"
    log_format: LogFormat = LogFormat.AUTO
    repo_url: str = DEFAULT_REPO_URL
    #: Where the lease lives: the Pod's own namespace.
    namespace: str = HARVESTER_SYSTEM
    job_service_account: str = "harvester"
    plan_service_account: str = "system-upgrade-controller"
    webhooks: bool = True


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {message} (see {self.prog} --help)\n")


def parse_options(arguments: Sequence[str], environ: Mapping[str, str]) -> RunOptions:
    """Read the command line; ends the process with one line where it cannot be understood."""
    parser = _Parser(
        prog="upgrade-manager", allow_abbrev=False, description="Drives Harvester upgrades declared as UpgradePlans."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    run = commands.add_parser(
        "run", help="run the manager until it is told to stop", formatter_class=_Formatter, allow_abbrev=False
    )
    _add_run_flags(run)
    found = parser.parse_args(arguments)
    return RunOptions(
        kubeconfig=found.kubeconfig,
        leader_elect=found.leader_elect,
        metrics=found.metrics_bind_address,
        metrics_secure=found.metrics_secure,
        probes=found.health_probe_bind_address,
        log_level=found.log_level,
        log_format=LogFormat(found.log_format),
        repo_url=found.repo_url,
        namespace=environ.get("POD_NAMESPACE") or HARVESTER_SYSTEM,
        job_service_account=environ.get("UPGRADE_JOB_SERVICE_ACCOUNT") or "harvester",
        plan_service_account=environ.get("UPGRADE_PLAN_SERVICE_ACCOUNT") or "system-upgrade-controller",
        webhooks=environ.get("ENABLE_WEBHOOKS", "").lower() != "false",
    )


class _Formatter(argparse.ArgumentDefaultsHelpFormatter):
    """Shows defaults, but no empty ones."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return super()._get_help_string(action) if action.default else action.help


def _add_run_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--kubeconfig", default="", help="file to connect with; else $KUBECONFIG, the Pod's account, ~/.kube/config")
    add("--leader-elect", type=_boolean, nargs="?", const=True, default=False, help="act only while holding a lease")
    add("--metrics-bind-address", type=_address, default=":8443", help="[HOST]:PORT of /metrics; 0 turns it off")
    add("--metrics-secure", type=_boolean, nargs="?", const=True, default=True, help="TLS, for permitted scrapers only")
    add("--health-probe-bind-address", type=_address, default=":8081", help="[HOST]:PORT of the probes; 0 for none")
    add("--log-level", choices=list(LEVELS), default="info", help="the least that is logged")
    add("--log-format", choices=[f.value for f in LogFormat], default="auto", help="auto: by whether it is a terminal")
    add(
        "--repo-url",
        type=_repo_url,
        default=DEFAULT_REPO_URL,
        help="where the upgrade repository answers; {plan} and {service} are filled in",
    )


def _boolean(text: str) -> bool:
    values = {"true": True, "1": True, "false": False, "0": False}
    if text.lower() not in values:
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return values[text.lower()]


def _address(text: str) -> BindAddress | None:
    try:
        return BindAddress.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _repo_url(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise argparse.ArgumentTypeError(f"{text!r} is no http:// or https:// address")
    return text
