"""The commands of the README and of the pages for users, run in order against a simulated cluster."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import os
import re
import shlex
import socket
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import IO

import aiohttp
import pytest
import yaml

from tests.support.cluster.kubectl import installed
from tests.support.programs.polling import eventually
from upgrade_manager.api.keys import LEASE
from webhook.certificates.rotation import SERVICE

ROOT = Path(__file__).parents[2]
#: In the order in which a user types their commands; the last one removes the manager.
DOCUMENTS = ("README.md", "docs/cli.md", "docs/metrics.md", "docs/demo.md", "docs/install.md")
TEXT = "\n".join((ROOT / name).read_text() for name in DOCUMENTS).replace(" \\\n  ", " ")
#: Each once: pages repeat some, such as the installation.
COMMANDS = list(
    dict.fromkeys(
        line for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines() if line.strip()
    )
)
#: Waits until a manager has accepted the plan, because a plan that is not in progress does not refuse another one.
ACCEPTED = "kubectl wait --for=condition=Progressing up/to-v1.8.0 --timeout=60s"
#: The wait of the script, which tests/cli/test_wait.py runs as a whole.
WAIT = re.findall(r"```bash\n(upgrade-manager wait [^;]*);", TEXT)[0]
#: Manifests by file name.
FILES = {name: yaml.safe_load(text) for name, text in re.findall(r"```yaml\n# (\S+)\n(.*?)```", TEXT, re.DOTALL)}
#: Prefix of a command that is not run -> reason.
NOT_RUN = {
    "make demo": "takes minutes; .ci/run runs it, and tests/hack/demo the options",
    "make test": "would run this test",
    "pip install": "needs a registry of packages; the plugin's tests install it",
    "kubectl create -f image-plan.yaml": "the webhook refuses a second plan; the test tries it",
    "make docker-build": "needs a container engine and a registry",
    "helm ": "tests/kubectl/test_install.py runs it on the real API server",
    "upgrade-manager check": "simulated Pods do not lead; tests/cli/test_check.py runs it",
    "upgrade-manager pause": "the plan has ended by then; tests/cli/test_pause.py runs it",
    "upgrade-manager resume": "the same",
    "upgrade-manager continue": "the same, in tests/cli/test_hold.py",
    "upgrade-manager retry": "the plan has not failed; tests/cli/test_retry.py runs it",
    "upgrade-manager preflight": "tests/cli/test_preflight.py runs it",
    "ENABLE_WEBHOOKS=false upgrade-manager run": "the test starts it with the simulated cluster's addresses",
    "make install run": "tests/cli/test_local_run.py runs a manager in this way",
    "source <(upgrade-manager completion": "is for bash; tests/display/test_in_tmux.py runs it",
    'eval "$(upgrade-manager completion': "the same for zsh",
    "upgrade-manager completion fish": "the same for fish",
    "kubectl -n harvester-system logs -l app.kubernetes.io/name=": "simulated Pods have no logs",
}
#: Prefix of a command -> text that its output must contain.
OUTPUT = {
    "kubectl get up -o wide -w": "MESSAGE",
    "kubectl describe up/to-v1.8.0": "Phase Transition Timestamps",
    "kubectl get up/to-v1.8.0  ": "Succeeded",
    "kubectl get up/to-v1.8.0 -o jsonpath='{.status.nodeUpgradeStatuses}'": '"node-2"',
    "upgrade-manager status --watch": "✓  ImageCleanup",
    "upgrade-manager status to-v1.8.0": '"state": "Succeeded"',
    "upgrade-manager wait to-v1.8.0": "plan to-v1.8.0: Succeeded",
    "kubectl delete up --all": "deleted",
    "kubectl delete -k deploy -l": 'deployment.apps "harvester-upgrade-manager" deleted',
    "kubectl delete -k deploy/crds": 'customresourcedefinition.apiextensions.k8s.io "upgradeplans',
}
#: Seconds for one command.
COMMAND_TIMEOUT = 120.0


def is_run(command: str) -> bool:
    return not command.startswith(tuple(NOT_RUN))


class Terminal:
    """Run commands in a directory with a kubeconfig of the simulated cluster."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self._path = f"{installed().parent}:{os.environ['PATH']}"

    async def start(self, *command: str, stdout: IO[bytes] | int = PIPE) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *command,
            cwd=self.folder,
            env={
                "PATH": self._path,
                "HOME": str(self.folder),
                "KUBECONFIG": str(self.kubeconfig),
                "PYTHONPATH": str(ROOT),
            },
            stdin=asyncio.subprocess.DEVNULL,
            stdout=stdout,
            stderr=asyncio.subprocess.STDOUT,
        )

    async def run(self, line: str, *, code: int = 0) -> str:
        """Run a command and return its output; stop a watch once the plan is accepted."""
        program, *arguments = shlex.split(line, comments=True)
        command = [sys.executable, "-m", "upgrade_manager"] if program == "upgrade-manager" else [program]
        process = await self.start(*command, *arguments)
        assert process.stdout is not None
        watch = line.endswith(" -w")
        async with asyncio.timeout(COMMAND_TIMEOUT):
            shown = await process.stdout.readuntil(b"  True  ") if watch else b""
            if watch:
                process.terminate()
            output = (shown + (await process.communicate())[0]).decode()
        assert watch or process.returncode == code, f"{line}\n{output}"
        return output


def free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"127.0.0.1:{free.getsockname()[1]}"


async def is_ready(address: str) -> bool:
    async with aiohttp.ClientSession() as session:
        with contextlib.suppress(aiohttp.ClientError):
            return (await session.get(f"http://{address}/readyz")).status == 200
    return False


@contextlib.asynccontextmanager
async def python(
    terminal: Terminal, *arguments: str, stdout: IO[bytes] | int = PIPE
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a Python module in the background."""
    process = await terminal.start(sys.executable, "-m", *arguments, stdout=stdout)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.communicate()


@pytest.mark.real_loop
@pytest.mark.timeout(200)
@pytest.mark.full
@pytest.mark.long
async def test_readme_commands_run_as_written(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    (tmp_path / "deploy").symlink_to(ROOT / "deploy")
    webhook, probes = free_address(), free_address()
    cluster = ["hack.cluster", "--kubeconfig", str(terminal.kubeconfig), "--time-scale", "0.05"]
    cluster += ["--service", f"harvester-system/{SERVICE}=https://{webhook}"]
    async with contextlib.AsyncExitStack() as stack:
        log = stack.enter_context((tmp_path / "manager.log").open("wb"))
        simulated = await stack.enter_async_context(python(terminal, *cluster))
        assert simulated.stdout is not None
        ready = dict(part.split("=", 1) for part in (await simulated.stdout.readline()).decode().split()[1:])
        url = "kubectl -n harvester-system get versions.harvesterhci.io v1.8.0 -o jsonpath={.spec.isoURL}"
        files = copy.deepcopy(FILES)
        files["version.yaml"]["spec"]["isoURL"] = await terminal.run(url)
        for name in ("version.yaml", "plan.yaml", "image-plan.yaml", "metrics-reader.yaml"):
            (tmp_path / name).write_text(yaml.safe_dump(files[name]))
        await terminal.run("kubectl -n harvester-system delete versions.harvesterhci.io v1.8.0")
        outputs = {}
        for command in filter(is_run, COMMANDS):
            if command.startswith("kubectl get up/to-v1.8.0  "):
                await terminal.run(WAIT)
            outputs[command] = await terminal.run(command)
            if command == "kubectl apply -k deploy":
                # Simulated Pods run no process.
                flags = ["--repo-url", ready["repo-url"], "--metrics-bind-address=0"]
                flags += [f"--health-probe-bind-address={probes}", f"--webhook-bind-address={webhook}"]
                await stack.enter_async_context(python(terminal, "upgrade_manager", "run", *flags, stdout=log))
                await eventually(partial(is_ready, probes), seconds=COMMAND_TIMEOUT)
            if command == "kubectl create -f plan.yaml":
                await terminal.run(ACCEPTED)
                refused = await terminal.run("kubectl create -f image-plan.yaml", code=1)
                assert "UpgradePlan to-v1.8.0 is" in refused
                assert "VirtualMachineImage harvester-system/harvester-v1.8.0-iso does not exist" in refused
    for start, text in OUTPUT.items():
        (output,) = (found for command, found in outputs.items() if command.startswith(start))
        assert text in output, start


def test_every_exception_matches_a_command() -> None:
    assert [start for start in (*NOT_RUN, *OUTPUT) if not any(map(re.compile(re.escape(start)).match, COMMANDS))] == []


def test_pushed_image_matches_the_kustomization() -> None:
    (image,) = FILES["deploy/default/kustomization.yaml"]["images"]
    (stored,) = yaml.safe_load((ROOT / "deploy/default/kustomization.yaml").read_text())["images"]
    assert (image["name"], image["newTag"]) == (stored["name"], stored["newTag"])
    assert f"make docker-build docker-push IMG={image['newName']}:{image['newTag']}" in COMMANDS


def test_removal_names_what_is_not_installed() -> None:
    (certificate,) = yaml.safe_load_all((ROOT / "deploy/certmanager/certificate.yaml").read_text())
    left = [f"lease {LEASE}", f"secret {certificate['spec']['secretName']}"]
    assert [one for one in left if f"kubectl -n harvester-system delete {one} --ignore-not-found" not in COMMANDS] == []


def test_readme_annotations_are_defined() -> None:
    keys = (ROOT / "upgrade_manager/api/keys.py").read_text()
    table = TEXT.split("| annotation on the plan")[1].split("\n\n")[0]
    named = re.findall(r"^\| `([a-z-]+): ", table, re.MULTILINE)
    assert len(named) == 8
    assert [name for name in named if f"/{name}" not in keys] == []
