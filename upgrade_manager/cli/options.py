from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NoReturn

from upgrade_manager import __version__
from upgrade_manager.api.keys import HARVESTER_SYSTEM
from upgrade_manager.cli.toolkit_image_options import DEFAULT_TOOLKIT, add_toolkit_image_flags, toolkit_config
from upgrade_manager.cli.toolkit_options import JOB_COMMANDS, ToolkitOptions, add_toolkit_commands, toolkit_options
from upgrade_manager.cli.user_options import UserOptions, add_access_flags, add_user_commands, user_options
from upgrade_manager.runtime.logging import LEVELS, LogFormat

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from upgrade_manager.api.toolkit_image import ToolkitConfig

#: Exit status of a usage error, as of argparse and kubectl.
USAGE = 2
_EPILOG = "exit status: 0 after SIGTERM or SIGINT, 1 after an error, 2 for a usage error"
_MAX_PORT = 65535
_LABEL = "[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?"
_HOST = rf"(?:{_LABEL}(?:\.{_LABEL})*\.?|\[[0-9a-f:.]+\])"
_HTTP_URL = re.compile(
    rf"https?://(?:[^\s/?#@{{}}]*@)?{_HOST}(?::(?P<port>[0-9]+))?(?:/[^\s?#{{}}]*)?",
    re.ASCII | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of `upgrade-manager run` and `upgrade-manager webhook`, from flags and environment."""

    #: Serve the admission webhook, and upgrade nothing.
    webhook_only: bool = False
    kubeconfig: str = ""
    context: str = ""
    leader_elect: bool = False
    #: Host and port of `/metrics`; None turns it off.
    metrics: tuple[str, int] | None = None
    metrics_secure: bool = True
    #: Host and port of the probes; None turns them off.
    probes: tuple[str, int] | None = None
    log_level: str = "info"
    log_format: LogFormat = LogFormat.AUTO
    #: "" for the Service, which a manager outside the cluster reaches through the API server.
    repo_url: str = ""
    #: The way in which kubelets are read; None: directly in the cluster, and through the API server elsewhere.
    kubelet_access: KubeletAccess | None = None
    #: Namespace of the Lease, and of the webhook's Service and Secret: the Pod's own.
    namespace: str = HARVESTER_SYSTEM
    job_service_account: str = "harvester"
    plan_service_account: str = "system-upgrade-controller"
    webhooks: bool = True
    #: Host and port of the admission webhook.
    webhook: tuple[str, int] | None = None
    #: Directory with tls.crt and tls.key of the webhook; "" for a self-made certificate.
    webhook_certificates: str = ""
    toolkit: ToolkitConfig = DEFAULT_TOOLKIT


class KubeletAccess(StrEnum):
    """The way in which the manager reads from kubelets."""

    DIRECT = "direct"
    PROXY = "proxy"


class _Parser(argparse.ArgumentParser):
    """Reports a usage error in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {message} (see {self.prog} --help)\n")


class _Formatter(argparse.ArgumentDefaultsHelpFormatter):
    """Shows non-empty defaults."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return super()._get_help_string(action) if action.default else action.help


def parse_options(arguments: Sequence[str], environ: Mapping[str, str]) -> RunOptions | UserOptions | ToolkitOptions:
    """Parse the command line; a usage error ends the process."""
    parser, commands = command_line()
    flags, unknown = parser.parse_known_args(arguments)
    if unknown:
        # By the command's parser, which names the help that lists its flags.
        commands[flags.command].error(f"unrecognized arguments: {' '.join(unknown)}")
    if flags.command in {"run", "webhook"}:
        return _run_options(flags, environ, parser=commands[flags.command])
    command = commands[flags.command]
    return user_options(flags, parser=command) or toolkit_options(flags, environ, parser=command)


def command_line() -> tuple[argparse.ArgumentParser, Mapping[str, argparse.ArgumentParser]]:
    """Return the parser of the command line, and those of its commands."""
    parser = _Parser(
        prog="upgrade-manager",
        allow_abbrev=False,
        description="Upgrades Harvester clusters as UpgradePlans declare.",
        epilog=f"Jobs in the toolkit image start: {', '.join(JOB_COMMANDS)}.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    add_user_commands(commands)
    for name, purpose in (("run", "run the manager"), ("webhook", "run only the admission webhook")):
        command = commands.add_parser(
            name, help=purpose, epilog=_EPILOG, formatter_class=_Formatter, allow_abbrev=False
        )
        _add_common_flags(command)
        if name == "run":
            _add_run_flags(command)
        else:
            # It reads no kubelet.
            command.set_defaults(leader_elect=False, repo_url=None, kubelet_access=KubeletAccess.PROXY.value)
    add_toolkit_commands(commands)
    return parser, commands.choices


def _run_options(
    flags: argparse.Namespace, environ: Mapping[str, str], *, parser: argparse.ArgumentParser
) -> RunOptions:
    webhook_only = flags.command == "webhook"
    return RunOptions(
        webhook_only=webhook_only,
        kubeconfig=flags.kubeconfig,
        context=flags.context,
        leader_elect=flags.leader_elect,
        metrics=flags.metrics_bind_address,
        metrics_secure=flags.metrics_secure,
        probes=flags.health_probe_bind_address,
        log_level=flags.log_level,
        log_format=LogFormat(flags.log_format),
        repo_url=flags.repo_url or "",
        kubelet_access=KubeletAccess(flags.kubelet_access) if flags.kubelet_access else None,
        namespace=environ.get("POD_NAMESPACE") or HARVESTER_SYSTEM,
        job_service_account=environ.get("UPGRADE_JOB_SERVICE_ACCOUNT") or "harvester",
        plan_service_account=environ.get("UPGRADE_PLAN_SERVICE_ACCOUNT") or "system-upgrade-controller",
        webhooks=webhook_only or _boolean_variable(parser, environ, "ENABLE_WEBHOOKS"),
        webhook=flags.webhook_bind_address,
        webhook_certificates=flags.webhook_cert_path,
        toolkit=toolkit_config(flags, parser=parser),
    )


def _boolean_variable(parser: argparse.ArgumentParser, environ: Mapping[str, str], name: str) -> bool:
    """Return the value of an environment variable, which is True by default."""
    try:
        return _boolean(environ.get(name) or "true")
    except argparse.ArgumentTypeError as error:
        parser.error(f"environment variable {name}: {error}")


def _add_run_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--leader-elect",
        type=_boolean,
        nargs="?",
        const=True,
        default=False,
        help="work only while this process holds the Lease",
    )
    add(
        "--repo-url",
        type=_repo_url,
        help="URL of the upgrade repository, with {plan} and {service}; else its Service, from outside the cluster "
        "through the API server",
    )
    add(
        "--kubelet-access",
        choices=[one.value for one in KubeletAccess],
        help="how the disk space check reads kubelets: direct, or by the API server's proxy, which kubelets before "
        "Kubernetes 1.33 need, with the right nodes/proxy; else direct, from outside the cluster proxy",
    )


def _add_common_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_access_flags(parser)
    add("--metrics-bind-address", type=_address, default=":8443", help="[HOST]:PORT of /metrics; 0 turns it off")
    add(
        "--metrics-secure",
        type=_boolean,
        nargs="?",
        const=True,
        default=True,
        help="serve /metrics with TLS, to clients that the API server authorizes; false is plain HTTP for everyone",
    )
    add("--health-probe-bind-address", type=_address, default=":8081", help="[HOST]:PORT of probes; 0 turns them off")
    add("--webhook-bind-address", type=_address, default=":9443", help="[HOST]:PORT of the webhook; 0 turns it off")
    add(
        "--webhook-cert-path",
        default="",
        help="directory with tls.crt and tls.key of the webhook, as in a Secret of cert-manager; else self-made",
    )
    add_toolkit_image_flags(parser)
    add("--log-level", choices=list(LEVELS), default="info", help="minimum level of log lines")
    add("--log-format", choices=[f.value for f in LogFormat], default="auto", help="auto: console on a terminal")


def _boolean(text: str) -> bool:
    values = {"true": True, "1": True, "false": False, "0": False}
    if text.lower() not in values:
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return values[text.lower()]


def _address(text: str) -> tuple[str, int] | None:
    """Parse `:8443`, `127.0.0.1:8443` or `[::1]:8443`; None for `0`."""
    if text == "0":
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is neither [HOST]:PORT nor 0")
    if int(port) > _MAX_PORT:
        raise argparse.ArgumentTypeError(f"{text!r}: port {port} is above {_MAX_PORT}. Use [HOST]:PORT or 0")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _repo_url(text: str) -> str:
    match = _HTTP_URL.fullmatch(text.replace("{plan}", "x").replace("{service}", "x"))
    if match is None or int(match["port"] or 0) > _MAX_PORT:
        # Without the value, which may have a password.
        form = "http[s]://HOST[:PORT][/PATH]; {plan} and {service} are replaced"
        raise argparse.ArgumentTypeError(f"not of the form {form}")
    return text
