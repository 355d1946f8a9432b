"""The beginning and the end that the commands for users have in common."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster.served import kubeconfig_of, manager, result
from tests.support.programs.processes import interrupted
from upgrade_manager.cli.session import CommandError, run_command

#: Command lines, and their status after a signal that comes before they do anything.
COMMANDS = {"run": 0, "status --watch": 128, "preflight": 128, "report -o -": 128}


@pytest.fixture(autouse=True)
def _handlers_as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.rule("status: Ctrl-C ends a command silently with status 130 until a watch shows the plan")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
@pytest.mark.parametrize("module", ["argparse", "aiohttp", "upgrade_manager.kube.kubeconfig", "asyncio.runners"])
@pytest.mark.thin
def test_signal_during_imports_ends_silently(module: str, number: signal.Signals) -> None:
    for line, begin in COMMANDS.items():
        done = interrupted("upgrade_manager", *line.split(), "--kubeconfig=/missing", module=module, number=number)
        assert (done.returncode, done.stdout, done.stderr) == (begin and begin + number, "", ""), line


NOT_FOUND = "not found. Set --kubeconfig or KUBECONFIG"


@pytest.mark.rule("status: a missing plan or missing access is one line, with exit status 1")
@pytest.mark.real_loop
@pytest.mark.parametrize(
    ("line", "server", "text"),
    [
        ("status", "", NOT_FOUND),
        ("status -w", "https://127.0.0.1:1", "API server https://127.0.0.1:1: "),
        ("preflight", "", NOT_FOUND),
        ("preflight", "https://127.0.0.1:1", "API server https://127.0.0.1:1: "),
        ("preflight", "https://127.0.0.1:99999", "upgrade-manager: "),
    ],
)
@pytest.mark.full
async def test_missing_access_gives_status_1_and_one_line(tmp_path: Path, line: str, server: str, text: str) -> None:
    if server:
        (tmp_path / "config").write_text(kubeconfig_of(server))
    refused = await result(await manager(*line.split(), f"--kubeconfig={tmp_path / 'config'}", home=tmp_path))
    assert (refused.code, text in refused.line) == (1, True)
    assert "a-secret-token" not in refused.err


@pytest.mark.parametrize(
    ("failure", "status", "text"),
    [
        pytest.param(CommandError("x is broken"), 1, "x is broken", id="an error"),
        pytest.param(CommandError("x", status=2), 2, "x", id="its status"),
        pytest.param(KeyboardInterrupt(), 130, "", id="Ctrl-C"),
        pytest.param(ValueError("port"), 1, "demo failed: ValueError: port", id="an unexpected error"),
    ],
)
def test_failure_is_one_line(
    failure: BaseException, status: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async def work() -> int:
        raise failure

    assert run_command("demo", work) == status
    assert capsys.readouterr().err == (f"upgrade-manager: {text}\n" if text else "")


def test_output_that_is_not_read_to_its_end_is_not_a_traceback() -> None:
    script = (
        "import sys\n"
        "from upgrade_manager.cli.session import run_command\n"
        "async def work():\n"
        "    sys.stdout.write('x' * (1 << 20))\n"
        "    return 0\n"
        "sys.exit(run_command('demo', work))\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # noqa: S603  # the command under test
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert (process.stderr.read(), process.wait(timeout=40)) == (b"", 1)
