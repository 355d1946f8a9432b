from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from upgrade_manager.toolkit.host.host_tree import HostTree
from upgrade_manager.toolkit.host.rke2_config import (
    choose_ingress,
    config_missing,
    ingress_not_chosen,
    write_config,
)
from upgrade_manager.toolkit.run.context import ToolkitContext
from upgrade_manager.toolkit.run.errors import StepFailed

CONFIG = "/etc/rancher/rke2/config.yaml"
MAX_PODS = f"{CONFIG}.d/99-max-pods.yaml"
INGRESS = f"{CONFIG}.d/99-traefik.yaml"
CONTENT = 'kubelet-arg+:\n- "max-pods=200"\n'


@pytest.fixture
def context(tmp_path: Path) -> ToolkitContext:
    return cast("ToolkitContext", SimpleNamespace(tree=HostTree(tmp_path)))


@pytest.mark.parametrize(
    ("path", "text", "written"),
    [
        pytest.param(CONFIG, None, True, id="no-file"),
        pytest.param(CONFIG, "", True, id="empty-file"),
        pytest.param(CONFIG, "server: https://vip:9345\n", True, id="other-setting"),
        pytest.param(CONFIG, "kubelet-arg:\n- max-pods=110\n", False, id="main-file"),
        pytest.param(f"{CONFIG}.d/50-a.yaml", "kubelet-arg+:\n- max-pods=110\n", False, id="further-file"),
        pytest.param(f"{CONFIG}.d/50-a.yml", "kubelet-arg: max-pods=110\n", False, id="text-instead-of-list"),
        pytest.param(f"{CONFIG}.d/50-a.yaml", '{"kubelet-arg": ["--max-pods=110"]}', False, id="json-and-dashes"),
        pytest.param(f"{CONFIG}.d/50-a.yaml", "kubelet-arg:\n- max-pods-per-core=1\n", True, id="similar-name"),
        pytest.param(f"{CONFIG}.d/50-a.yaml", "kubelet-arg: [1, null, {a: b}]\n", True, id="wrong-types"),
        pytest.param(f"{CONFIG}.d/50-a.yaml", "- max-pods=1\n", True, id="list-instead-of-object"),
        pytest.param(f"{CONFIG}.d/50-a.txt", "kubelet-arg: [max-pods=1]\n", True, id="file-that-is-not-read"),
        pytest.param(f"{CONFIG}.d/50-a.yaml", "# kubelet-arg: [max-pods=1]\n", True, id="comment"),
        pytest.param(MAX_PODS, 'kubelet-arg+:\n- "max-pods=300"\n', False, id="own-file-changed"),
        pytest.param(MAX_PODS, "", True, id="own-file-empty"),
    ],
)
async def test_max_pods(context: ToolkitContext, path: str, text: str | None, *, written: bool) -> None:
    if text is not None:
        context.tree.write(path, text)
    assert await config_missing(context) == (MAX_PODS if written else "")
    await write_config(context)
    assert await config_missing(context) == ""
    assert (context.tree.read(MAX_PODS) == CONTENT) is written
    if written:
        assert context.tree.path(MAX_PODS).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["a: [", "a: !!python/object:os.system x", "\0"])
async def test_file_that_rke2_cannot_read_is_named(context: ToolkitContext, text: str) -> None:
    context.tree.write(f"{CONFIG}.d/50-a.yaml", text)
    with pytest.raises(StepFailed, match=r"50-a.yaml on the host is not valid YAML.*: RKE2 cannot start with it"):
        await config_missing(context)
    assert not context.tree.exists(MAX_PODS)


@pytest.mark.parametrize(
    ("path", "text", "written"),
    [
        pytest.param(CONFIG, "server: https://vip:9345\n", True, id="other-setting"),
        pytest.param(CONFIG, "ingress-controller: ingress-nginx\n", False, id="a-user's-choice"),
        pytest.param(f"{CONFIG}.d/50-a.yaml", "ingress-controller: [traefik, ingress-nginx]\n", False, id="list"),
        pytest.param(f"{CONFIG}.d/50-a.yaml", "ingress-controller:\n", True, id="no-value"),
        pytest.param(INGRESS, "ingress-controller: traefik\n", False, id="done"),
    ],
)
async def test_ingress_controller(context: ToolkitContext, path: str, text: str, *, written: bool) -> None:
    context.tree.write(path, text)
    assert await ingress_not_chosen(context) == (f"{INGRESS} does not exist" if written else "")
    await choose_ingress(context)
    assert await ingress_not_chosen(context) == ""
    assert (context.tree.read(INGRESS) == "ingress-controller: traefik\n") is (written or path == INGRESS)


async def test_broken_configuration_is_named_before_the_choice(context: ToolkitContext) -> None:
    context.tree.write(CONFIG, "a: [\n")
    with pytest.raises(StepFailed, match="is not valid YAML"):
        await ingress_not_chosen(context)
    assert context.tree.read(INGRESS) is None
