"""The kernel's arguments of the next boot: the names of the node's NICs stay, and multipath is off where it was.

os_upgrade.py has the steps. GRUB appends the variable third_party_kernel_args of /oem/grubenv to the kernel's command
line, whichever image it boots. With `ifname=NAME:MAC` the initramfs keeps a name that another driver would change, and
the node its network. A NIC in a bond shows the bond's MAC, so that its own one is taken.

The former value is recorded before the change, and restored where the node keeps its operating system.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import structlog
import yaml

from upgrade_manager.kube import objects
from upgrade_manager.toolkit.host.grub_environment import BadBlock, BlockFull, empty_block, value_of, with_value
from upgrade_manager.toolkit.host.host_paths import GRUB_ENVIRONMENT, OS_WORK
from upgrade_manager.toolkit.host.host_programs import Call, run_program
from upgrade_manager.toolkit.host.network_cards import NetworkCard, physical_cards
from upgrade_manager.toolkit.os.grub_files import write_file
from upgrade_manager.toolkit.os.os_release import release_os, runs_release
from upgrade_manager.toolkit.run.errors import StepFailed

if TYPE_CHECKING:
    from upgrade_manager.toolkit.host.host_tree import HostTree
    from upgrade_manager.toolkit.run.context import ToolkitContext

#: The variable that GRUB appends to the kernel's command line.
VARIABLE = "third_party_kernel_args"
RECORD = f"{OS_WORK}/kernel-arguments.json"
#: The answers of the installation.
_CONFIG = "/oem/harvester.config"
_MULTIPATH = "multipath"
_PINNED = re.compile(r"(?:^|\s)ifname=[^\s:]+:(?P<mac>[0-9a-fA-F:]{17})(?=\s|$)")
#: Seconds.
_TIMEOUT = 60.0

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """The change that a run has made, or is about to make."""

    #: The release's operating system, for which the change was made.
    os: str
    #: The value of the variable; None without the variable.
    before: str | None
    after: str


async def check_arguments(context: ToolkitContext) -> None:
    """Raise StepFailed if the arguments cannot be written, before anything is changed."""
    if not await runs_release(context):
        planned_block(context.tree, node=context.node)


async def arguments_missing(context: ToolkitContext) -> str:
    """Return the arguments that the next boot would lack; empty if the node runs the release."""
    if await runs_release(context):
        return ""
    missing = missing_arguments(context.tree)
    return f"{VARIABLE} in {GRUB_ENVIRONMENT} lacks {' '.join(missing)}" if missing else ""


async def write_arguments(context: ToolkitContext) -> None:
    """Append the missing arguments, after recording the former value. Raises StepFailed."""
    tree, os = context.tree, await release_os(context)
    block, found = planned_block(tree, node=context.node), _load(tree)
    current, after = current_value(tree), value_of(block, VARIABLE) or ""
    # An argument more, for a NIC that was added since, does not change what was there before the upgrade.
    before = found.before if found is not None and (found.os, found.after) == (os, current) else current
    record = _Record(os=os, before=before, after=after)
    write_file(tree, RECORD, (json.dumps(asdict(record), indent=1) + "\n").encode())
    write_file(tree, GRUB_ENVIRONMENT, block)


async def restore_arguments(context: ToolkitContext) -> None:
    """Restore the recorded value, unless a user has changed the value since. Raises StepFailed."""
    tree, record = context.tree, _load(context.tree)
    if record is None or record.os != await release_os(context):
        return
    if current_value(tree) == record.after:
        write_file(tree, GRUB_ENVIRONMENT, with_value(_block(tree), VARIABLE, record.before))
    else:
        _log.info("kernel arguments kept", variable=VARIABLE, reason="they were changed since")
    tree.remove(RECORD)


async def check_names(context: ToolkitContext) -> None:
    """Raise StepFailed unless GRUB's own program shows a pinned name for each NIC; the node would lose its network."""
    if await runs_release(context):
        return
    call = Call(argv=("grub2-editenv", GRUB_ENVIRONMENT, "list"), timeout=_TIMEOUT)
    output = await run_program(context.programs, call)
    start = f"{VARIABLE}="
    value = next((line for line in output.stdout.splitlines() if line.startswith(start)), start)
    pinned = _pinned(value.removeprefix(start))
    lost = [card.name for card in physical_cards(context.tree) if card.mac not in pinned]
    if lost:
        raise StepFailed(
            f"the release's drivers may rename the NICs {', '.join(lost)}, and GRUB does not read their names from "
            f"{GRUB_ENVIRONMENT}. Show what it reads: grub2-editenv {GRUB_ENVIRONMENT} list"
        )


def missing_arguments(tree: HostTree) -> list[str]:
    """Return the arguments that the variable lacks. Raises StepFailed for a file that cannot be read."""
    current = current_value(tree) or ""
    is_kept = _MULTIPATH in current or _has_external_storage(tree)
    pinned, names = _pinned(current), list[str]()
    for card in physical_cards(tree):
        if card.mac not in pinned:
            pinned.add(card.mac)
            names.append(f"ifname={card.name}:{card.mac}")
    return names if is_kept else ["multipath=off", *names]


def current_value(tree: HostTree) -> str | None:
    """Return the variable's value, None without the variable. Raises StepFailed."""
    return value_of(_block(tree), VARIABLE)


def planned_block(tree: HostTree, *, node: str) -> bytes:
    """Return the block with all arguments. Raises StepFailed if they do not fit."""
    value = " ".join([*(current_value(tree) or "").split(), *missing_arguments(tree)])
    try:
        return with_value(_block(tree), VARIABLE, value)
    except BlockFull as error:
        raise StepFailed(_too_long(physical_cards(tree), cause=str(error), node=node)) from error


def _too_long(cards: list[NetworkCard], *, cause: str, node: str) -> str:
    on_node = f" on node {node}" if node else ""
    return (
        f"{GRUB_ENVIRONMENT} has no room for {VARIABLE} with the names of the {len(cards)} NICs: {cause}. "
        f"The NICs are {', '.join(card.name for card in cards)}. Disable NICs that are not used in the firmware, or "
        f"remove what is not needed from {VARIABLE}{on_node}: grub2-editenv {GRUB_ENVIRONMENT} list"
    )


def _pinned(value: str) -> set[str]:
    return {found["mac"].lower() for found in _PINNED.finditer(value)}


def _block(tree: HostTree) -> bytes:
    """Return the environment block; a new one without a file, or for one that a power failure has emptied."""
    try:
        block = tree.read_bytes(GRUB_ENVIRONMENT) or empty_block()
        value_of(block, VARIABLE)
    except OSError as error:
        raise StepFailed(f"{GRUB_ENVIRONMENT} cannot be read: {error.strerror or error}") from error
    except BadBlock as error:
        raise StepFailed(
            f"{GRUB_ENVIRONMENT} is not an environment block of GRUB, which ignores it. Move it away, make a new one "
            f"(grub2-editenv {GRUB_ENVIRONMENT} create), and set again what it had"
        ) from error
    return block


def _has_external_storage(tree: HostTree) -> bool:
    """Return True if the node was installed with external storage, whose multipath stays on. Raises StepFailed."""
    try:
        found = yaml.safe_load(tree.read(_CONFIG) or "")
    except OSError as error:
        raise StepFailed(f"{_CONFIG} cannot be read: {error.strerror or error}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise StepFailed(f"{_CONFIG} is not valid YAML, so that nothing says whether multipath is used") from error
    enabled = objects.value(found, "os", "externalstorage", "enabled") if isinstance(found, dict) else None
    return str(enabled).lower() == "true"


def _load(tree: HostTree) -> _Record | None:
    """Return the record, None without a valid one."""
    try:
        return _Record(**json.loads(tree.read(RECORD) or ""))
    except (ValueError, TypeError):
        return None
