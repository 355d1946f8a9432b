"""Net writes of the toolkit's commands, for the listings in tests/golden/writes.

A line begins with the row of release/migrations that causes the write, or with the step that docs/toolkit.md describes.
"""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from hack.actors.helm_storage import HelmStorage
from tests.support.cluster.net_writes import NetWrites, column, text_of
from upgrade_manager.kube.client import Client
from upgrade_manager.release.migrations.generic import WITNESS_REPLICAS
from upgrade_manager.release.migrations.nodes import STATE_MOUNT
from upgrade_manager.release.migrations.v1_7_to_v1_8 import FEATURES
from upgrade_manager.toolkit.charts.helm import Helm
from upgrade_manager.toolkit.host.host_paths import ELEMENTAL_STATE
from upgrade_manager.toolkit.os.reboot import SCRIPT
from upgrade_manager.toolkit.run.catalogue import steps_of
from upgrade_manager.toolkit.run.steps import run_steps

if TYPE_CHECKING:
    from tests.support.toolkit.toolkit import ToolkitWorld
    from upgrade_manager.toolkit.host.host_programs import Call, HostPrograms, Output

#: Rows of single values of Rancher's chart, whose step has several.
_VALUES = {"value features": FEATURES.id, "value replicas": WITNESS_REPLICAS.id}
#: Folders in which the kernel shows its state.
_KERNEL = {"proc", "sys"}
#: Programs that only read.
_READS = re.compile(
    r"blkid|chronyc|crictl (?:images|ps)|ctr .* images list|df |du |e2fsck -f -n|elemental upgrade --help|"
    r"grub2-editenv \S+ list|rsync .*--dry-run|systemctl (?:is-active|show)|sync "
)
#: Characters of a file that are listed.
_LONGEST = 300


async def written(world: ToolkitWorld, command: str, *, on_host: bool = True) -> list[str]:
    """Run a command to its end, and return its listing. Raises StepFailed."""
    return [f"# {command}", *await _Written(world, command).collect(on_host=on_host)]


class _Written:
    """Implements Progress and HostPrograms: what the command's steps write to the cluster and to its host."""

    def __init__(self, world: ToolkitWorld, command: str) -> None:
        self._world = world
        self._steps = steps_of(command)
        self._rows = {step.name: step.row.id for step in self._steps if step.row is not None}
        self._step = ""
        self._files = _files(world.tree.root)
        self._began = dict(self._files)
        #: The cause of a file's last change.
        self._changed: dict[str, str] = {}
        self._runs: dict[str, None] = {}
        self.api = NetWrites(world.simulation.client("reader"), self.cause)

    def cause(self, name: str, field: str) -> str:
        """Return the row, or the step."""
        row = _VALUES.get(field, "") if name.startswith("Helm ") else self._rows.get(self._step, "")
        is_of_row = row != STATE_MOUNT.id or ELEMENTAL_STATE in name
        return row if row and is_of_row else f"step {self._step}"

    async def started(self, step: str, *, number: int, total: int) -> None:
        _ = number, total
        self._step = step

    def waiting(self, step: str, missing: str) -> None:
        """See Progress."""

    def ended(self, step: str, *, skipped: bool) -> None:
        _ = skipped
        self._step = step
        files = _files(self._world.tree.root)
        for path in {*files, *self._files}:
            if files.get(path) != self._files.get(path):
                self._changed[path] = self.cause("file", "")
        self._files = files

    async def run(self, call: Call) -> Output:
        """See HostPrograms."""
        line = " ".join((call.program, *call.argv[1:]))
        if _READS.match(line) is None:
            line = line.replace(SCRIPT, f"'{SCRIPT}'")
            self._runs.setdefault(f"{column(self.cause(line, ''))}run     {line}")
        return await self._world.programs.run(call)

    async def collect(self, *, on_host: bool) -> list[str]:
        """Run the command to its end, and return its listing: objects, the host's programs, and its files."""
        middleware = self._world.simulation.middleware
        middleware.hook = self.api
        client = Client(middleware, user_agent="toolkit", random=Random(1), field_validation="Strict")
        helm = Helm(_WrittenHelm(self._world.helm, HelmStorage(self._world.client), self.api), environment={})
        place = {} if on_host else {"node": "", "pod": ""}
        context = self._world.context(client=client, helm=helm, programs=self, **place)
        await run_steps(self._steps, context, self)
        return [*self.api.lines(), *self._runs, *self._file_lines()]

    def _file_lines(self) -> list[str]:
        lines = []
        for path in sorted(self._changed):
            before, after = self._began.get(path), self._files.get(path)
            if before == after:
                continue
            sign = "create" if before is None else "delete" if after is None else "change"
            was = f" (was {_shown(path, before)})" if sign == "change" else ""
            value = f" := {_shown(path, after)}" if after is not None else ""
            lines.append(f"{column(self._changed[path])}{sign:<7} file /{path}{value}{was}")
        return lines


class _WrittenHelm:
    """Implements HostPrograms: compares a Helm release before and after each upgrade."""

    def __init__(self, helm: HostPrograms, storage: HelmStorage, writes: NetWrites) -> None:
        self._helm = helm
        self._storage = storage
        self._writes = writes

    async def run(self, call: Call) -> Output:
        if "upgrade" not in call.argv:
            return await self._helm.run(call)
        name, namespace = call.argv[2], call.argv[call.argv.index("--namespace") + 1]
        before = await self._release(name, namespace)
        output = await self._helm.run(call)
        after = await self._release(name, namespace)
        self._writes.compare_fields(f"Helm release {namespace}/{name}", before, after, verb="upgrade")
        return output

    async def _release(self, name: str, namespace: str) -> dict[str, str]:
        latest = (await self._storage.revisions(name, namespace))[-1]
        values = {f"value {key}": text_of(value) for key, value in latest["config"].items()}
        return {"chart": text_of(latest["chart"]["metadata"]["version"]), **values}


def _files(root: Path) -> dict[str, str]:
    """Return the text of the tree's files, without the kernel's."""
    return {
        str(path.relative_to(root)): path.read_bytes().decode(errors="replace")
        for path in root.rglob("*")
        if path.is_file() and not path.is_symlink() and path.relative_to(root).parts[0] not in _KERNEL
    }


def _shown(path: str, text: str | None) -> str:
    """Return a file's text, but of an image, an archive, or a record of the toolkit."""
    if text is None or path.startswith("usr/local/harvester-upgrade") or re.search(r"\.(img|zst|txt|log)$", path):
        return "…"
    shown = text_of(re.sub(r"#{9,}$", "#…", text))
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
