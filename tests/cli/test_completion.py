"""Completion of the command line."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.cluster.served import served
from tests.support.managers.displayed import MANIFEST
from tests.support.programs.programs import install
from upgrade_manager.cli.completion import completion
from upgrade_manager.cli.user_options import SHELLS, CompletionOptions
from upgrade_manager.kube.resources import UPGRADE_PLANS

ROOT = Path(__file__).parents[2]
KUBECONFIG = """\
apiVersion: v1
kind: Config
contexts: [{name: one, context: {cluster: k}}, {name: two, context: {cluster: k}}, null, {name: 7}]
clusters: [{name: k, cluster: {server: "https://127.0.0.1:1"}}]
"""


#: Words after the program's name, and their completions.
ROWS = {
    "a command": (["sta"], ["status"]),
    "several commands": (["re"], ["remedies", "resume", "retry", "report", "restore-vm"]),
    "a flag": (["status", "--w"], ["--watch"]),
    "a choice": (["status", "-o", ""], ["table", "json", "yaml"]),
    "a choice of another command": (["preflight", "-o", "j"], ["json"]),
    "a level": (["run", "--log-level", "w"], ["warning"]),
    "a shell": (["completion", ""], [*SHELLS]),
    "contexts": (["status", "--context", ""], ["one", "two"]),
    "a context": (["run", "--context", "t"], ["two"]),
    "a kubeconfig's contexts": (["status", "--kubeconfig", "/dev/null", "--context", ""], []),
    "plans of a server that is away": (["status", "--context", "one", ""], []),
    "a word with a quote": (["status", "it's", "--wat"], ["--watch"]),
}
#: Prints the completions of each row. In a separate process: argcomplete closes file descriptors.
SCRIPT = """
from upgrade_manager.cli import completion
completion.TIMEOUT = {seconds}
for words in {rows}:
    completion.complete_plugin(words)
"""


def completed(kubeconfig: Path, *rows: Sequence[str], seconds: float = 30) -> list[list[str]]:
    """Return the completions of the last word of each row, with that time for the names of plans."""
    done = subprocess.run(  # noqa: S603  # the command under test
        [sys.executable, "-c", SCRIPT.format(rows=[*rows], seconds=seconds)],
        env={"PATH": os.environ["PATH"], "KUBECONFIG": str(kubeconfig), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=40,
        check=True,
    )
    assert done.stderr == ""
    *answers, rest = done.stdout.split(":4\n")
    assert rest == ""
    return [[line.partition("\t")[0] for line in answer.splitlines()] for answer in answers]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Provide the completions of all rows, with the kubeconfig of a server that does not respond."""
    file = tmp_path_factory.mktemp("user") / "config"
    file.write_text(KUBECONFIG)
    return dict(zip(ROWS, completed(file, *(words for words, _ in ROWS.values())), strict=True))


@pytest.mark.rule("status: commands, flags and their values are completed in bash, zsh, fish and kubectl")
@pytest.mark.parametrize("row", ROWS)
def test_word_is_completed(answers: dict[str, list[str]], row: str) -> None:
    assert answers[row] == ROWS[row][1]


def test_unreadable_kubeconfig_has_no_contexts(tmp_path: Path) -> None:
    for index, content in enumerate(("{", "- a", "contexts: 7", "")):
        (tmp_path / str(index)).write_text(content)
    paths = ":".join(str(tmp_path / str(index)) for index in range(5))
    assert completed(Path(paths), ["status", "--context", ""]) == [[]]


@pytest.mark.full
@pytest.mark.real_loop
async def test_plans_and_nodes_of_the_cluster_are_completed(tmp_path: Path) -> None:
    async with served(tmp_path) as cluster:
        await cluster.client.create(UPGRADE_PLANS, MANIFEST)
        for seconds, names in ((30, ["demo"]), (0, [])):
            found = await asyncio.to_thread(completed, cluster.kubeconfig, ["report", ""], seconds=seconds)
            assert found == [names]
        found = await asyncio.to_thread(completed, cluster.kubeconfig, ["pause", "demo", "node-0", ""], ["resume", ""])
        assert found == [["node-0", "node-1", "node-2"], ["demo"]]


@pytest.mark.parametrize("shell", SHELLS)
def test_script_of_a_shell_is_printed(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert completion(CompletionOptions(shell=shell)) == 0
    assert "upgrade-manager" in capsys.readouterr().out


def test_bash_completes_by_the_script(tmp_path: Path) -> None:
    install("upgrade-manager", tmp_path)
    script = (
        'source <(upgrade-manager completion bash)\nCOMP_LINE="upgrade-manager prefl" COMP_POINT=21\n'
        'COMP_WORDS=(upgrade-manager prefl) COMP_CWORD=1\n_python_argcomplete upgrade-manager\necho "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(  # noqa: S603  # the command under test
        ["bash", "-c", script],  # noqa: S607  # found on the PATH
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=40,
        check=True,
    )
    assert done.stdout.strip() == "preflight"
