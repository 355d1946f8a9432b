"""RKE2's configuration that the new release needs, before Rancher restarts RKE2 on the node.

The commands pre_drain and single_node_upgrade write it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from upgrade_manager.release.migrations.v1_8_to_v1_9 import INGRESS_CONTROLLER, INGRESS_FILE
from upgrade_manager.toolkit.run.errors import StepFailed
from upgrade_manager.toolkit.run.steps import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from upgrade_manager.toolkit.host.host_tree import HostTree
    from upgrade_manager.toolkit.run.context import ToolkitContext

_CONFIG = "/etc/rancher/rke2/config.yaml"
_FOLDER = f"{_CONFIG}.d"
#: The suffixes of the files that RKE2 reads.
_SUFFIXES = (".yaml", ".yml")
#: Configuration may contain tokens.
_MODE = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFile:
    """A file that RKE2 merges into its configuration."""

    #: The name in the folder of further files, which RKE2 reads in alphabetical order.
    name: str
    content: str
    #: Returns True if the host's configuration lacks the file's setting.
    is_needed: Callable[[HostTree], bool]

    @property
    def path(self) -> str:
        """The absolute path on the host."""
        return f"{_FOLDER}/{self.name}"


def _lacks_kubelet_argument(name: str) -> Callable[[HostTree], bool]:
    def is_needed(tree: HostTree) -> bool:
        return name not in set(_kubelet_arguments(tree))

    return is_needed


FILES = (
    # The kubelet's default of 110 Pods is too low for nodes with many VMs. A value that the user sets is kept.
    ConfigFile(
        name="99-max-pods.yaml",
        content='kubelet-arg+:\n- "max-pods=200"\n',
        is_needed=_lacks_kubelet_argument("max-pods"),
    ),
)


_INGRESS = ConfigFile(
    name=INGRESS_FILE,
    content="ingress-controller: traefik\n",
    is_needed=lambda tree: not any(key == "ingress-controller" and value for key, value in _settings(tree)),
)


async def config_missing(context: ToolkitContext) -> str:
    """Return the files that the release needs and the host lacks."""
    return ", ".join(file.path for file in FILES if file.is_needed(context.tree))


async def write_config(context: ToolkitContext) -> None:
    """Write the missing files. Raises StepFailed for a file on the host that RKE2 cannot read."""
    for file in FILES:
        if file.is_needed(context.tree):
            context.tree.write(file.path, file.content, mode=_MODE)


def _kubelet_arguments(tree: HostTree) -> Iterator[str]:
    """Return the names of the kubelet's arguments in all files."""
    for key, value in _settings(tree):
        if key in {"kubelet-arg", "kubelet-arg+"}:
            for argument in value if isinstance(value, list) else [value]:
                yield str(argument).partition("=")[0].lstrip("-").strip()


def _settings(tree: HostTree) -> Iterator[tuple[str, Any]]:
    """Return the settings of all files."""
    for path in (_CONFIG, *(f"{_FOLDER}/{name}" for name in tree.names(_FOLDER) if name.endswith(_SUFFIXES))):
        yield from _parse(path, tree.read(path) or "").items()


def _parse(path: str, text: str) -> dict[str, Any]:
    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        place = f"line {line + 1}" if line is not None else "it"
        raise StepFailed(
            f"{path} on the host is not valid YAML ({place}): RKE2 cannot start with it; fix it"
        ) from error
    return found if isinstance(found, dict) else {}


async def ingress_not_chosen(context: ToolkitContext) -> str:
    """Return that the host leaves the choice of the ingress controller to RKE2."""
    return f"{_INGRESS.path} does not exist" if _INGRESS.is_needed(context.tree) else ""


async def choose_ingress(context: ToolkitContext) -> None:
    """Let RKE2 run Traefik. Raises StepFailed for a file on the host that RKE2 cannot read."""
    if _INGRESS.is_needed(context.tree):
        context.tree.write(_INGRESS.path, _INGRESS.content, mode=_MODE)


#: The steps of both commands.
CONFIG_STEPS = (
    Step(name="write-rke2-config", timeout=60, missing=config_missing, act=write_config),
    Step(
        name="choose-ingress-controller",
        timeout=900,
        missing=ingress_not_chosen,
        act=choose_ingress,
        row=INGRESS_CONTROLLER,
    ),
)
